"""A run of a plan: its treatments are applied in order, and give a record and a `Treated`."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ..encoding.plain_values import family
from ..errors import InputError
from ..utils.progress import Reporter
from ..utils.validation import check_exist, is_hashable
from .coded_columns import NUMBERS
from .labels import Labelled, explained
from .random.key import Key
from .record import TreatmentRecord, TreatmentsRecord
from .steps import Step, StepCounts, errors_of
from .treated_check import Checked, named_by_criteria, why_unmet
from .treatment import Tools, TreatedTable, Treatment, ValueMapStep

if TYPE_CHECKING:
    import pandas as pd

    from .plan import Plan


class Applied(NamedTuple):
    """A treatment and its step for a table."""

    treatment: Treatment
    step: Step


def apply_plan(table: TreatedTable, plan: Plan, key: Key | None, report: Reporter) -> list[Applied]:
    """Apply the treatments of a plan to a table, and return them with their steps.

    Raises InputError if a treatment does not fit the table; the message names the treatment and its position.
    """
    check_exist("hierarchies", plan.hierarchies, table.names)
    for name, argument in named_by_criteria(plan).items():
        check_exist(argument, [name], table.names)
    applied: list[Applied] = []
    labelled: dict[Hashable, Labelled] = {}
    reading = [treatment for treatment in plan.treatments if treatment.reads_values]
    table.expect([name for treatment in reading for name in named_in(treatment, table.names)])
    for number, treatment in enumerate(plan.treatments):
        # The treatment before may have shown stages of its own.
        report.stage("treat", len(plan.treatments), "treatments")
        report.advance(number)
        said = f"treatment {number + 1} ({treatment.do})"
        with errors_of(said), explained(labelled, treatment.do):
            _check_named(treatment, table.names)
            alike = [later for later in plan.treatments[number:] if type(later) is type(treatment)]
            table.ask_together([name for later in alike for name in named_in(later, table.names)])
            step = treatment.prepare(table, Tools(plan.hierarchies, key, number, dict(labelled)))
            applied.append(Applied(treatment, step))
            before = {name: table.type_of(name) for name in step.writes}
            reads = treatment.reads_numbers(plan.hierarchies)
            table.apply(step, said)
            for name, kind in before.items():
                known, after = labelled.get(name, Labelled({}, kind, "")), table.type_of(name)
                labelled[name] = _labelled(said, applied[-1], reads, known, kind, after)
    return applied


def _labelled(
    said: str, applied: Applied, reads: bool, known: Labelled, before: pa.DataType, after: pa.DataType
) -> Labelled:
    """Return the labels of a column after a treatment.

    said: words for the treatment. reads: whether it reads numbers and leaves labels. known: the labels before. before,
    after: the type of the column's values.
    """
    treatment, step = applied
    kind = known.kind
    if reads and isinstance(step, ValueMapStep):
        written = step.mapper(pa.array([], kind)).type
        kind = kind if family(written) == "text" else written
    elif not treatment.keeps_numbers:
        kind = after
    made = known.made or (said if family(after) == "text" != family(before) else "")
    labels = {**known.labels, **dict.fromkeys(treatment.own_labels, said)}
    return Labelled(labels, kind if family(kind) in NUMBERS else after, made)


def _check_named(treatment: Treatment, names: Sequence[Hashable]) -> None:
    """Raise ColumnNotFoundError for a column that a treatment needs and the table lacks, by the field that names it."""
    missing = [name for name in treatment.named() if name not in names]
    for field, value in vars(treatment).items():
        theirs = value if isinstance(value, list | tuple | Mapping) else [value]
        check_exist(field, [name for name in missing if name in theirs], names)
    check_exist("column", missing, names)


def named_in(treatment: Treatment, names: Sequence[Hashable]) -> list[Hashable]:
    """Return the columns of a table that any field of a treatment names."""
    existing = set(names)
    candidates: list[Hashable] = list(treatment.named())
    for value in vars(treatment).values():
        candidates += value if isinstance(value, list | tuple | Mapping) and not _names(value, existing) else [value]
    return [name for name in dict.fromkeys(filter(is_hashable, candidates)) if name in existing]


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
    checked: Checked,
) -> TreatmentsRecord:
    """Return the record of a run.

    counts: see `TreatedTable`. source: description of the input, ready for JSON. rows: number of original rows.
    started: time of `time.perf_counter` at which the run began. values: of the criteria of the plan in the treated
    table.
    """
    records = [TreatmentRecord.from_step(*pair, own) for pair, own in zip(applied, counts[:-1], strict=True)]
    seconds = {"treat": round(time.perf_counter() - started, 6)}
    used = key.digest if key is not None and any(pair.treatment.is_random for pair in applied) else None
    asked = plan.to_dict()
    hierarchies = asked.pop("hierarchies", {})
    del asked["treatment"]
    record = TreatmentsRecord.from_run(records, counts[-1], hierarchies, source, rows, used, seconds)
    return replace(record, criteria=checked.to_record(), unmet=why_unmet(plan, checked), asked=asked)


def find_key(plan: Plan, key: Any, seed: int | None) -> Key | None:
    """Return the key for the random treatments of a plan, None if none is given or needed.

    Raises InputError if the plan needs a key and has none, and if both key and seed are given.
    """
    random = [treatment for treatment in plan.treatments if treatment.is_random]
    if key is not None and seed is not None:
        raise InputError("key, seed: both determine the random numbers. Leave seed= out; it is for tests.")
    if key is None and seed is None:
        if random:
            raise InputError(
                f"key: the plan has a treatment that draws at random ({random[0].do}), which takes a secret key of 32 "
                "bytes. Make one with gpupif.treatments.Key.new().save('treat.key'), keep it apart from the treated "
                "table, and give it as key=."
            )
        return None
    if seed is not None:
        return Key.from_seed(seed)
    return Key.from_any(key)


@dataclass(eq=False, repr=False)
class Treated:
    """The result of `gpupif.treat` and `gpupif.treat_files`.

    table: the treated table, of the kind of the given table; the path of the output for `treat_files`.
    record: `TreatmentsRecord`. The treatments and the number of cells that each changed.
    files: list of paths. The written files; empty for `treat`.
    """

    table: Any
    record: TreatmentsRecord
    _working: TreatedTable | None
    _applied: Sequence[Applied]
    files: Sequence[Path] = ()

    @property
    def is_met(self) -> bool:
        """Return whether the treated table meets the criteria of the plan; True for a plan without criteria."""
        return self.record.unmet is None

    def estimates(self, column: Hashable) -> pd.DataFrame:
        """Estimate how often each value of a column occurred before the column was randomised.

        Returns a pandas DataFrame with a row for each value: value, share, standard_error and rows (the share as a
        number of rows). Estimates are unbiased: a share may be below 0 or above 1.

        Raises InputError if no treatment randomised the column, or if a later treatment changed the column again.
        """
        if self._working is None:
            raise InputError(
                "estimates: a killed run had finished the table, and its probabilities are gone. Treat it again."
            )
        check_exist("column", [column], self._working.names)
        values = self._working.values(column)
        for treatment, step in reversed(self._applied):
            estimates = step.estimates(column, values)
            if estimates is not None:
                return estimates
            if column in treatment.named():
                raise InputError(
                    f"column {column!r}: {treatment.do} changed it last, and nothing can be estimated from that. "
                    "Estimate before it."
                )
        raise InputError(f"column {column!r}: no treatment randomised it: its frequencies are the original ones.")

    def __repr__(self) -> str:
        return f"<Treated: {len(self._applied)} treatments>\n{self.record}"
