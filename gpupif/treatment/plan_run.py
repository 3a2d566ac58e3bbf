"""A run of a plan: its treatments applied one after the other, the record of it, and what is returned."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError, warn
from ..utils.progress import Reporter
from ..utils.validation import check_exist, is_hashable
from .random.key import Key
from .record import TreatmentRecord, TreatmentsRecord
from .steps import Step, StepCounts, errors_of
from .treatment import Tools, TreatedTable, Treatment

if TYPE_CHECKING:
    import pandas as pd

    from .plan import Plan


class Applied(NamedTuple):
    """A treatment, and its step for a table."""

    treatment: Treatment
    step: Step


def apply_plan(table: TreatedTable, plan: Plan, key: Key | None, report: Reporter) -> list[Applied]:
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
            table.apply(step, said)
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


class Treated:
    """What `gpupif.treat` and `gpupif.treat_files` return.

    table: of the kind that came in; of files a path. record: what was done. files: that were written, none where the
    table is in memory.
    """

    def __init__(
        self,
        table: Any,
        record: TreatmentsRecord,
        working: TreatedTable | None,
        applied: Sequence[Applied],
        files: Sequence[Path] = (),
    ) -> None:
        self.table = table
        self.record = record
        self.files = files
        self._working = working
        self._applied = applied

    def estimates(self, column: Hashable) -> pd.DataFrame:
        """How often each value of a column stood in the table before it was randomised, with standard errors.

        Returns a frame, a row for each value, as the treatment says that randomised it. Raises InputError where none
        did, or where a later one changed the column again.
        """
        if self._working is None:
            raise InputError(
                "estimates: the run was finished by another one, and what they take is gone. Treat it again."
            )
        check_exist("column", [column], self._working.names)
        values = self._working.values(column)
        for treatment, step in reversed(self._applied):
            found = step.estimates(column, values)
            if found is not None:
                return found
            if column in treatment.named():
                raise InputError(
                    f"column {column!r}: {treatment.do} changed it last, and nothing can be estimated from that. "
                    "Estimate before it."
                )
        raise InputError(f"column {column!r}: no treatment randomised it, so that its frequencies are as they are.")

    def __repr__(self) -> str:
        return f"<Treated: {len(self._applied)} treatments>\n{self.record}"
