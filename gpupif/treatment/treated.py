"""A table that was treated, and the record of it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..utils.validation import check_exist
from .base import WorkingTable
from .record import TreatmentsRecord
from .run import Applied

if TYPE_CHECKING:
    import pandas as pd


class Treated:
    """What `gpupif.treat` and `gpupif.treat_files` return.

    table: of the kind that came in; of files a path. record: what was done. files: that were written, none where the
    table is in memory.
    """

    def __init__(
        self,
        table: Any,
        record: TreatmentsRecord,
        working: WorkingTable | None,
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
