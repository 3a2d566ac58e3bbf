"""Scores over attackers who know any few of the columns, summarised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from .summary import Summary

if TYPE_CHECKING:
    from rich.console import Console

    from ..attack.known_subsets import KnownSubsets


@dataclass(frozen=True)
class AnyKnownSummary(Summary):
    """A `Summary` of the worst scores; made by `AnyKnownScores.summary`.

    mean: the `Summary` of the mean scores. attackers: how many there were, in words; subsets: the same, as of
    `KnownSubsets.to_dict`.
    """

    mean: Summary
    attackers: str
    subsets: Mapping[str, Any]

    @classmethod
    def of(cls, worst: Summary, mean: Summary, subsets: KnownSubsets) -> AnyKnownSummary:
        """Both summaries as one."""
        facts = {field.name: getattr(worst, field.name) for field in fields(worst)}
        return cls(**facts, mean=mean, attackers=repr(subsets), subsets=subsets.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """As of `Summary`, with the attackers under ``known_any`` and the summary of the means under ``mean``."""
        return {**super().to_dict(), "known_any": dict(self.subsets), "mean": self.mean.to_dict()}

    def print(self, console: Console) -> None:
        """Draw it on a console of rich: the worst over all attackers as any summary, and the means by column."""
        from . import report

        console.print(f"Each cell's worst and mean score over attackers: {self.attackers}", highlight=False)
        console.print("[bold]Worst[/]", highlight=False)
        super().print(console)
        console.print("\n[bold]Mean[/]", highlight=False)
        for table in report.column_tables(self.mean.columns, console):
            console.print(table)
