"""The command `gpupif suda`."""

from __future__ import annotations

from .options import Given, verdicts


def suda(given: Given) -> None:
    """Find special uniques: rows of TABLE that few of their values single out, and their SUDA scores."""
    given.check()

    from ..io.write import check_output
    from ..marginals.request import CountRequest
    from ..special_uniques.suda import suda as find_suda
    from ..utils.validation import whole_number

    top = whole_number("top", given.top, "rows")
    given.check_goes_with("output", "contributions", "overwrite", "compression")
    from_file = given.file_roles(given.columns, given.weights)
    given.columns = from_file.quasi_identifiers("columns", given.columns)
    if given.missing != "wildcard" and given.sampling_fraction is None:
        # Weights are for DIS scores. Wildcards have none, and a sampling fraction takes the place of weights: then the
        # weights of a file of roles are left out.
        given.weights = from_file.weights(given.weights)
    with given.configured():
        if given.output is not None:
            check_output(given.output, given.overwrite)
        found = given.find(find_suda, CountRequest(given.columns, given.weights).pick)
        given.write(found, "the scores are complete")
    summary = found.summary(top)
    files = {"input": str(given.table)} | ({} if given.output is None else {"output": str(given.output)})
    facts = {"spilled_bytes": found.spilled_bytes, "seconds": found.seconds}
    given.show(lambda: {**files, **from_file.facts(), **verdicts(summary), **summary.to_dict(), **facts}, summary.print)
    given.say_roles(from_file)
    if given.output is not None:
        given.say(f"Scores written to {given.output}")
