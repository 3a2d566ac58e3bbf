"""The configuration of a nightly run as a schema: each key with its type, its default, and what it means.

A key's description is the comment that `gpupif nightly init` writes beside it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# A number r, for any r columns; or columns by name.
Columns = list[str]


class Section(BaseModel):
    """A table of the configuration: unknown keys are errors, values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class InputSettings(Section):
    """Which table: files, or a query on a database."""

    path: str | None = Field(
        default=None, description="Path of a file or folder, or a pattern such as 'data/*.parquet'."
    )
    separator: str | None = Field(default=None, description="Separator of CSV; left out: found by itself.")
    connection: str | None = Field(
        default=None, description="In place of a path: a database, 'duckdb:///people.db' or '${RISK_DATABASE}'."
    )
    query: str | None = Field(default=None, description="What of the database is the table: a SELECT.")
    driver: Literal["auto", "duckdb", "adbc", "sqlalchemy"] = Field(
        default="auto", description="What reads the database: 'duckdb', 'adbc', 'sqlalchemy', or 'auto'."
    )
    watermark: str | None = Field(
        default=None, description="A column whose highest value rises with every change of the database's table."
    )
    row_key: Columns = Field(
        default=[], description="Columns that tell rows apart from night to night; none: by their place."
    )
    on_schema_change: Literal["fail", "accept"] = Field(
        default="fail", description="Where columns come, go or change their type: 'fail', or 'accept'."
    )


class AnyKnownSettings(Section):
    """An attacker who knows any few of some columns; see `gpupif.AnyKnown`."""

    any: Annotated[int, Field(ge=0)] = Field(description="How many columns are known.")
    among: Columns | None = Field(default=None, description="Of which; left out: of all that are scored.")
    subsets: int | None = Field(default=None, description="So many of their subsets only, drawn at random.")
    seed: int | None = Field(default=None, description="Of that draw.")


Known = Columns | Annotated[int, Field(ge=0)] | AnyKnownSettings


class ScoreSettings(Section):
    """What is scored, and against whom: what `gpupif.score` takes."""

    columns: Columns | None = Field(default=None, description="Columns to score; left out: all.")
    measures: list[str] = Field(default=["cig", "csf"], description="Of those that `gpupif measures` lists.")
    known: Known | None = Field(
        default=None, description="What the attacker knows: columns, or any so many; left out: all."
    )
    attackers: dict[str, Known] | None = Field(
        default=None, description="Several attackers by name, in place of known."
    )
    weights: str | None = Field(default=None, description="A column of sampling weights, for scores and risk.")
    missing: Literal["category", "wildcard", "error"] = Field(
        default="category", description="What a missing value is."
    )
    population: str | None = Field(default=None, description="Path of the population that the table is a sample of.")
    population_lacks: Literal["error", "count"] = Field(
        default="error", description="What to do with rows that it lacks."
    )
    priors: str | None = Field(default=None, description="Path of a table of priors: column, value, probability.")
    accuracies: str | None = Field(default=None, description="Path of a table of accuracies: column, accuracy.")
    distances: dict[str, str | list[str]] = Field(
        default={},
        description="By column 'ordered', 'nominal', values in order, or the path of a hierarchy; for emd and t.",
    )
    dtype: Literal["float64", "float32"] = Field(default="float64", description="Type of scores that are kept.")


class RiskSettings(Section):
    """What is asked of equivalence classes: what `gpupif.risk` takes."""

    quasi_identifiers: Columns = Field(
        default=[], description="Columns by which people may be found again; none: no classes."
    )
    sensitive: Columns = Field(default=[], description="Columns that nobody is to learn.")
    k: Annotated[int, Field(ge=1)] = Field(default=5, description="Classes of fewer rows are counted apart.")
    l: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Of recursive (c,l)-diversity.")  # noqa: E741
    threshold: float | None = Field(default=None, description="A risk above it counts as at risk; left out: 1/k.")


class RunSettings(Section):
    """Where and within what a run computes, and where its state lies."""

    state: str = Field(
        default="gpupif-nightly", description="Folder of the state and the record; nobody else may read it."
    )
    device: str = Field(default="auto", description="'auto', 'cpu', 'cuda' or 'cuda:0'.")
    memory_limit: str | None = Field(default=None, description="Such as '8GiB'; left out: 60 % of what is free.")
    threads: int | None = Field(default=None, description="Threads; left out: one for each core.")
    temp: str | None = Field(default=None, description="Folder of temporary files; left out: within the state.")
    show_values: bool = Field(
        default=False, description="Whether values of the table may be in logs, reports and the record."
    )


class KeepSettings(Section):
    """What is kept of a run."""

    scores: Literal["none", "cells", "all"] = Field(
        default="none", description="Of the scores: 'none', 'cells' (those where a condition holds), or 'all'."
    )
    where: str | None = Field(default=None, description="Which cells, for scores = 'cells': 'cig >= 3'.")
    runs: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="So many runs at least are kept; older ones go; left out: all."
    )
    days: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Runs of so many days are kept too.")


class GateSettings(Section):
    """A gate: something measured, and limits on it, or on its change since the last good run.

    Which of the further keys a kind takes is said by its entry in `gates.GATES`.
    """

    kind: str = Field(description="What is measured; see the page on nightly runs.")
    name: str | None = Field(default=None, description="How it is called; left out: after what it measures.")
    percentile: Annotated[float, Field(ge=0, le=100)] | None = Field(default=None, description="Which percentile.")
    measure: str | None = Field(default=None, description="Of which measure.")
    column: str | None = Field(
        default=None, description="Of which column; left out, where that makes sense: the worst of all."
    )
    attacker: str | None = Field(default=None, description="Against which attacker; left out: the worst of all.")
    above: float | None = Field(default=None, description="Cells above which score are counted.")
    max: float | None = Field(default=None, description="The gate fails above this.")
    min: float | None = Field(default=None, description="The gate fails below this.")
    max_rise: float | None = Field(
        default=None, description="The gate fails where it rose by more since the last good run."
    )
    max_fall: float | None = Field(
        default=None, description="The gate fails where it fell by more since the last good run."
    )


class WebhookSettings(Section):
    """Where the outcome is posted."""

    url: str = Field(description="'${RISK_WEBHOOK}': from the environment, so that it stands in no file.")
    format: Literal["json", "openlineage"] = Field(default="json", description="'json', or 'openlineage'.")
    when: Literal["always", "failed"] = Field(
        default="always", description="After every run, or where a gate or it failed."
    )
    timeout: Annotated[float, Field(gt=0)] = Field(default=10.0, description="Seconds that one attempt may take.")
    retries: Annotated[int, Field(ge=0)] = Field(default=3, description="Attempts after the first.")
    headers: dict[str, str] = Field(default={}, description="Such as Authorization = 'Bearer ${RISK_TOKEN}'.")


class TellSettings(Section):
    """Who is told, beside the terminal."""

    json_file: str | None = Field(default=None, description="File of the outcome as JSON.")
    markdown: str | None = Field(default=None, description="File of the outcome as Markdown, for CI systems.")
    junit: str | None = Field(default=None, description="File of the gates as JUnit XML, for CI systems.")
    prometheus: str | None = Field(default=None, description="File of metrics, for node_exporter's textfile collector.")
    log: Literal["text", "json"] = Field(
        default="text", description="How lines of the log are written to standard error."
    )
    webhooks: list[WebhookSettings] = Field(default=[], description="Addresses that the outcome is posted to.")


class Settings(Section):
    """The whole configuration."""

    input: InputSettings
    score: ScoreSettings = ScoreSettings()
    risk: RiskSettings = RiskSettings()
    run: RunSettings = RunSettings()
    keep: KeepSettings = KeepSettings()
    gates: list[GateSettings] = []
    tell: TellSettings = TellSettings()
