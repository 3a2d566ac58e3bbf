"""The treatments of a plan, prepared and applied one after the other, whatever way the table is held."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import GpupifError, InputError, warn
from ..utils.progress import Reporter
from ..utils.validation import check_exist
from .base import Step, Tools, Treatment, WorkingTable
from .record import StepCounts, TreatmentRecord, TreatmentsRecord

if TYPE_CHECKING:
    from .randomness.key import Key


class Plan(Protocol):
    """What is asked of a plan, see `gpupif.Plan`."""

    treatments: Sequence[Treatment]
    hierarchies: Mapping[Hashable, Any]


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
    def apply(self, step: Step) -> None:
        """Have all rows treated."""

    @abstractmethod
    def expect(self, names: Sequence[Hashable]) -> None:
        """Those columns will be looked at."""


def apply_plan(table: TreatableTable, plan: Plan, key: Key | None, report: Reporter) -> list[Applied]:
    """Treat a table. Raises InputError for what does not fit it, said of the treatment by its place in the plan."""
    applied: list[Applied] = []
    everything = set(table.names)
    table.expect([name for one in plan.treatments for name in named_in(one, everything)])
    report.stage("treat", len(plan.treatments), "treatments")
    for number, treatment in enumerate(plan.treatments):
        try:
            check_exist("column", treatment.named(), table.names)
            step = treatment.prepare(table, Tools(plan.hierarchies, key, number))
            table.apply(step)
        except GpupifError as error:
            raise error.about(f"treatment {number + 1} ({treatment.do})") from error
        applied.append(Applied(treatment, step))
        report.advance()
    return applied


def named_in(treatment: Treatment, names: set[Hashable]) -> list[Hashable]:
    """The columns of a table that any field of a treatment names."""
    found: list[Hashable] = []
    for value in vars(treatment).values():
        several = value if isinstance(value, list | tuple) and not _names(value, names) else [value]
        found += [one for one in several if _names(one, names)]
    return list(dict.fromkeys(found))


def _names(value: Any, names: set[Hashable]) -> bool:
    return isinstance(value, Hashable) and value in names


def make_record(
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
    used = key is not None and any(one.treatment.is_random for one in applied)
    return TreatmentsRecord.of(records, source, rows, key.digest if key is not None and used else None, seconds)


def find_key(plan: Plan, key: Any, seed: int | None) -> Key | None:
    """The key that a plan draws by; raises InputError where it needs one and there is none, or two."""
    random = [one for one in plan.treatments if one.is_random]
    if key is not None and seed is not None:
        raise InputError("key, seed: both say what is drawn. Leave seed out; it is for tests.")
    if key is None and seed is None:
        if random:
            raise InputError(
                f"key: the plan has a treatment that draws at random ({random[0].do}), which takes a secret key of 32 "
                "bytes. Make one with `openssl rand -hex 32 > treat.key`, keep it apart from the treated table, and "
                "give it as key=... (--key-file)."
            )
        return None
    from .randomness.key import Key

    if seed is None:
        return Key.of(key)
    if random:
        warn(
            "seed: anyone can try all seeds, and undo what was drawn: it is for tests only. Give a secret key= for a "
            "table that is handed on.",
            UserWarning,
        )
    return Key.from_seed(seed)
