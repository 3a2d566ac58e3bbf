"""The command `gpupif tables`."""

from __future__ import annotations

from .options import Given


def tables(given: Given) -> None:
    """Count the rows of TABLE, or sum a column, by combinations of values, and protect the counts for publication."""
    given.check()
    to = given.report_file(given.table)
    by, record = given.by, given.record_id
    from_file = given.file_roles(by, record, given.value, given.weights)
    if given.value is None and given.method != "cell-key":
        given.weights = from_file.weights(given.weights)
    with given.configured():
        from ..io.write import check_output
        from ..release.cells import CellRequest
        from ..release.tables import tables as make_tables

        if given.output is not None:
            check_output(given.output, given.overwrite)
        asked = CellRequest.from_arguments(by, given.value, given.weights, given.method, record, given.missing)
        found = given.find(make_tables, asked.columns().pick)
        given.write(found, "the cells are complete")
    given.show_result(found, from_file, to=to, input=given.table, output=given.output)
    if given.output is not None:
        given.say(f"Cells written to {given.output}.")
