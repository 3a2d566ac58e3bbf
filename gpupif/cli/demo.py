"""The command `gpupif demo`."""

from __future__ import annotations

import time

import typer

from .options import Given, compiling_ahead

# So many rows compile every kernel that a larger table needs.
WARM_UP_ROWS = 20_000


def demo(given: Given) -> None:
    """Score a synthetic census: see what gpupif says, and how fast."""
    measures = ("cig", "csf", "wcig")
    with given.configured(), compiling_ahead("scores", measures):
        from ..datasets import census
        from ..engines.choose import choose_engine
        from ..frames.open import device_for
        from ..scoring.score import score as score_table
        from ..utils.config import config

        started = time.perf_counter()
        table = census(given.rows)
        made = time.perf_counter() - started
        with config(device=choose_engine(device_for(table)).device):
            # The first run compiles; the second one shows the speed from then on.
            score_table(census(WARM_UP_ROWS), measures)
            scores = score_table(table, measures)
    if not given.as_json:
        typer.echo(f"A synthetic census of {given.rows:,} people, made in {made:.1f} s; no real person is in it.\n")
    summary = scores.summary()
    given.show(summary.to_dict, summary.print)
    if not given.as_json:
        typer.echo("\nNext, your own table:   gpupif score TABLE.parquet -o SCORES.parquet   (CSV and Feather too)")
        typer.echo("From Python:            import gpupif; scores = gpupif.score(frame); scores.cig; scores.top(20)")
        typer.echo("More:                   gpupif score --help, gpupif info")
