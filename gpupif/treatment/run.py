"""The treatments of a plan, prepared and applied one after the other, whatever way the table is held."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError, warn
from ..utils.progress import Reporter
from ..utils.validation import check_exist, is_hashable
from .base import Step, Tools, Treatment, WorkingTable
from .random.key import Key
from .record import StepCounts, TreatmentRecord, TreatmentsRecord
from .steps import errors_of

if TYPE_CHECKING:
    from .plan import Plan


class Applied(NamedTuple):
    """A treatment, and its step for a table."""

    treatment: Treatment
    step: Step


class TreatableTable(WorkingTable):
    """A table that steps are applied to: at once, or when its rows are read.

    counts: what each step did, as far as that is known.
    """

    counts: list[StepCounts]

    @abstractmethod
    def apply(self, step: Step, names: Sequence[Hashable] = (), said: str = "") -> None:
        """Have all rows treated. names: columns that the step may look at and change; said: of it in errors."""

    @abstractmethod
    def expect(self, names: Sequence[Hashable]) -> None:
        """Those columns will be looked at."""

    def ask_together(self, names: Sequence[Hashable]) -> None:
        """When the values of one of these columns are asked for, those of the others soon will be."""


def apply_plan(table: TreatableTable, plan: Plan, key: Key | None, report: Reporter) -> list[Applied]:
    """Treat a table. Raises InputError for what does not fit it, said of the treatment by its place in the plan."""
    check_exist("hierarchies", plan.hierarchies, table.names)
    applied: list[Applied] = []
    reading = [one for one in plan.treatments if one.reads_values]
    table.expect([name for one in reading for name in named_in(one, table.names)])
    report.stage("treat", len(plan.treatments), "treatments")
    for number, treatment in enumerate(plan.treatments):
        said = f"treatment {number + 1} ({treatment.do})"
        with errors_of(said):
            check_exist("column", treatment.named(), table.names)
            alike = [one for one in plan.treatments[number:] if type(one) is type(treatment)]
            table.ask_together([name for one in alike for name in named_in(one, table.names)])
            step = treatment.prepare(table, Tools(plan.hierarchies, key, number))
            table.apply(step, named_in(treatment, table.names), said)
        applied.append(Applied(treatment, step))
        report.advance()
    return applied


def named_in(treatment: Treatment, names: Sequence[Hashable]) -> list[Hashable]:
    """The columns of a table that any field of a treatment names."""
    existing = set(names)
    found: list[Hashable] = list(treatment.named())
    for value in vars(treatment).values():
        several = value if isinstance(value, list | tuple | Mapping) and not _names(value, existing) else [value]
        found += several
    return [name for name in dict.fromkeys(filter(is_hashable, found)) if name in existing]


def _names(value: Any, existing: set[Hashable]) -> bool:
    return is_hashable(value) and value in existing


def make_record(
    plan: Plan,
    applied: Sequence[Applied],
    counts: Sequence[StepCounts],
    source: Mapping[str, Any],
    rows: int,
    key: Key | None,
    started: float,
) -> TreatmentsRecord:
    """The record of a run that began at a time of `time.perf_counter`."""
    records = [TreatmentRecord.of(*one, own) for one, own in zip(applied, counts, strict=True)]
    seconds = {"treat": round(time.perf_counter() - started, 6)}
    used = key.digest if key is not None and any(one.treatment.is_random for one in applied) else None
    hierarchies = plan.to_dict().get("hierarchies", {})
    return TreatmentsRecord.of(
        records, hierarchies, source, rows, key.digest if key is not None and used else None, seconds
    )


def find_key(plan: Plan, key: Any, seed: int | None) -> Key | None:
    """The key that a plan draws by; raises InputError where it needs one and there is none, or two."""
    random = [one for one in plan.treatments if one.is_random]
    if key is not None and seed is not None:
        raise InputError("key, seed: both say what is drawn. Leave seed out; it is for tests.")
    if key is None and seed is None:
        if random:
            raise InputError(
                f"key: the plan has a treatment that draws at random ({random[0].do}), which takes a secret key of 32 "
                "bytes. Make one with gpupif.treatments.Key.new().save('treat.key'), keep it apart from the treated "
                "table, and give it as key=... (--key-file)."
            )
        return None
    if seed is not None:
        return Key.from_seed(seed)
    if isinstance(key, str | os.PathLike):
        _warn_of_readers(Path(key))
    return Key.of(key)


def _warn_of_readers(file: Path) -> None:
    """Warn where others than its owner may read the file of a key."""
    with contextlib.suppress(OSError):
        mode = file.stat().st_mode
        if not stat.S_ISDIR(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
            warn(
                f"key: {file} can be read by others than its owner; who has the key can undo what was drawn. Change "
                f"its rights: chmod 600 {file}.",
                UserWarning,
            )
