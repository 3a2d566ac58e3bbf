"""The command `gpupif budget`."""

from __future__ import annotations

from .options import Given


def budget(given: Given) -> None:
    """Show what the releases of a table spent, on what, and what is left; make the ledger with --epsilon."""
    to = given.report_file(given.ledger.name)
    from ..release.ledger import Budget

    found = Budget(given.ledger, **given.arguments(Budget))
    given.show(lambda: {"verdict": found.verdict(), **found.to_dict()}, found.print)
    if to.file is not None:
        from ..report.records import document_of

        to.write([document_of(found)], given)
