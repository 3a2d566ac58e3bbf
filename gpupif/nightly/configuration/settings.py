"""The configuration of a nightly run as a schema: each key with its type, its default, and what it means.

A key's description is the comment that `gpupif nightly init` writes beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from ...errors import InputError
from ...measures import resolve_measures
from ...utils.config import split_device
from ...utils.memory import parse_size

Columns = list[str]
Number = Annotated[float, Field(allow_inf_nan=False)]
# The types of pydantic's errors that say all of it themselves, and of those that say what was expected.
FAULT, EXPECTED = "fault", "expected"
# The limits of a gate.
LIMITS = ("max", "min", "max_rise", "max_fall")
# The uses of paths, which a key of the schema has as PATH.
PATH, READ, WRITTEN, WORKED_IN = "path", "read", "written", "worked in"
# The names of the types that one value may have: pydantic puts the name into the location of an error.
LIST, TEXT, COUNT, TABLE = TAGS = ("(list)", "(text)", "(count)", "(table)")


class Section(BaseModel):
    """A table of the configuration: unknown keys are errors, values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with values that have the right types: the key, and a sentence or two about it."""
        yield from ()

    def blank(self, *keys: str) -> Iterator[tuple[str, str]]:
        """Yield as `faults` the keys, of some, that have blank text, or text that no path can have."""
        for key in keys:
            text = getattr(self, key)
            if text is not None and not text.strip():
                yield key, "expected text in its quotes, got none. Write it there, or remove the key."
            if text is not None and "\0" in text:
                yield key, "expected text without NUL, which no path has. Remove it."

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = [
            InitErrorDetails(type=PydanticCustomError(FAULT, "{said}", {"said": said}), loc=(key,), input=None)
            for key, said in self.faults()
        ]
        if found:
            raise ValidationError.from_exception_data(type(self).__name__, found)
        return self


def setting(default: Any, description: str, *examples: Any, path: str | None = None) -> Any:
    """Return a key of a section with its default, its description, and values that it may have.

    path: the use of a path, READ, WRITTEN or WORKED_IN; None for a value that is no path.
    """
    uses: Any = None if path is None else {PATH: path}
    return Field(default=default, description=description, examples=list(examples) or None, json_schema_extra=uses)


def _one_of(tags: dict[type, str], expected: str) -> Discriminator:
    """Return what tells the types of a value apart, by the value itself. expected: all the types, in words."""

    def tag(value: Any) -> str | None:
        return None if isinstance(value, bool) else next((tags[kind] for kind in tags if isinstance(value, kind)), None)

    return Discriminator(tag, custom_error_type=EXPECTED, custom_error_message=expected)


def _said_by(check: Any, *arguments: Any) -> Iterator[str]:
    """Yield the error of a check of the package, without the name of the argument; nothing if the value passes."""
    try:
        check(*arguments)
    except InputError as error:
        yield str(error).partition(": ")[2]


class InputSettings(Section):
    """The table: files, or a query on a database."""

    path: str | None = setting(
        None, "Path of a file or folder, or a pattern such as 'data/*.parquet'.", "data/*.parquet", path=READ
    )
    separator: str | None = setting(None, "Separator of CSV; left out: found by itself.", ";")
    connection: str | None = setting(
        None, "In place of a path: a database, 'duckdb:///people.db' or '${RISK_DATABASE}'.", "${RISK_DATABASE}"
    )
    query: str | None = setting(None, "What of the database is the table: a SELECT.", "SELECT * FROM people")
    driver: Literal["auto", "duckdb", "adbc", "sqlalchemy"] = setting(
        "auto", "What reads the database: 'duckdb', 'adbc', 'sqlalchemy', or 'auto'."
    )
    watermark: str | None = setting(
        None, "A column whose highest value rises with every change of the database's table.", "changed_at"
    )
    row_key: Columns = setting([], "Columns that tell rows apart from night to night; none: by their place.")
    on_schema_change: Literal["fail", "accept"] = setting(
        "fail", "Where columns come, go or change their type: 'fail', or 'accept'."
    )

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.path is None and self.connection is None:
            yield (
                "path",
                "expected the path of a table, or a connection and a query in its place; got neither. Add "
                "path = 'data/*.parquet', say.",
            )
        if self.path is not None and self.connection is not None:
            yield "connection", "expected it or a path, which is there too. Remove one of them."
        yield from self.blank("path", "connection")
        if self.connection is not None and not (self.query or "").strip():
            yield "query", "expected what of the database is the table, got nothing. Add a SELECT."
        if self.connection is None:
            for key in ("query", "watermark", "driver"):
                if getattr(self, key) not in (None, "auto"):
                    yield key, "expected it with a connection only, and there is none. Remove it, or add that."
        elif self.separator is not None:
            yield "separator", "expected it with a path only, and here is a connection. Remove it."


class AnyKnownSettings(Section):
    """An attacker who knows any few of some columns; see `gpupif.AnyKnown`."""

    any: Annotated[int, Field(ge=0)] = Field(description="How many columns are known.")
    among: Columns | None = setting(None, "Of which; left out: of all that are scored.", ["sex", "age"])
    subsets: Annotated[int, Field(ge=1)] | None = setting(None, "So many of their subsets only, drawn at random.", 1000)
    seed: int | None = setting(None, "Of that draw.", 0)

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.seed is not None and self.subsets is None:
            yield "seed", "expected it with subsets only, which it draws. Add these, or remove it."


Known = Annotated[
    Annotated[Columns, Tag(LIST)]
    | Annotated[Annotated[int, Field(ge=0)], Tag(COUNT)]
    | Annotated[AnyKnownSettings, Tag(TABLE)],
    _one_of(
        {list: LIST, int: COUNT, dict: TABLE, AnyKnownSettings: TABLE},
        "a list of columns, how many of any columns, or a table such as {any = 2, among = ['sex', 'age']}",
    ),
]


def columns_known(known: Known | None) -> list[str]:
    """Return the columns that an attacker names; none for an attacker who knows any or all columns."""
    if isinstance(known, AnyKnownSettings):
        return known.among or []
    return known if isinstance(known, list) else []


Distance = Annotated[
    Annotated[str, Tag(TEXT)] | Annotated[list[str], Tag(LIST)],
    _one_of({str: TEXT, list: LIST}, "'ordered', 'nominal', a list of values in order, or the path of a hierarchy"),
]


class ScoreSettings(Section):
    """Scores: columns, measures and attackers, as `gpupif.score` takes them."""

    columns: Columns | None = setting(None, "Columns to score; left out: all.", ["sex", "age", "illness"])
    measures: list[str] = setting(["cig", "csf"], "Of those that `gpupif measures` lists.")
    known: Known | None = setting(
        None, "What the attacker knows: columns, or any so many; left out: all.", ["sex", "age"]
    )
    attackers: dict[str, Known] | None = setting(
        None, "Several attackers by name, in place of known.", {"neighbour": ["sex", "age"], "anybody": {"any": 2}}
    )
    weights: str | None = setting(None, "A column of sampling weights, for scores and risk.", "weight")
    missing: Literal["category", "wildcard", "error"] = setting("category", "What a missing value is.")
    population: str | None = setting(
        None, "Path of the population that the table is a sample of.", "population.parquet", path=READ
    )
    population_lacks: Literal["error", "count"] = setting("error", "What to do with rows that it lacks.")
    priors: str | None = setting(
        None, "Path of a table of priors: column, value, probability.", "priors.csv", path=READ
    )
    accuracies: str | None = setting(
        None, "Path of a table of accuracies: column, accuracy.", "accuracies.csv", path=READ
    )
    distances: dict[str, Distance] = setting(
        {},
        "By column 'ordered', 'nominal', values in order, or the path of a hierarchy; for emd and t.",
        {"age": "ordered", "stage": ["I", "II", "III"]},
        path=READ,
    )
    dtype: Literal["float64", "float32"] = setting("float64", "Type of scores that are kept.")

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.known is not None and self.attackers is not None:
            yield "attackers", "expected them or known, which is there too. Remove one of them."
        for key in ("columns", "attackers"):
            if getattr(self, key) in ([], {}):
                yield key, "expected at least one, got none. Name one, or remove the key."
        yield from self.blank("population", "priors", "accuracies")
        if self.population_lacks == "count" and self.population is None:
            yield "population_lacks", "expected 'count' with a population only, and there is none. Add that."
        yield from (("measures", said) for said in _said_by(resolve_measures, self.measures))


Amount = Annotated[Number, Field(ge=0, le=2**62)]


class GameSettings(Section):
    """The amounts at stake, all in one unit; see `gpupif.models.Game`."""

    publisher_benefit: Amount = Field(default=1200.0, description="What each row that is published brings.")
    publisher_loss: Amount = Field(default=300.0, description="What each person costs who is re-identified.")
    adversary_gain: Amount = Field(default=300.0, description="What each such person brings the adversary.")
    adversary_cost: Amount = Field(default=4.0, description="What each attempt costs the adversary.")


class RiskSettings(Section):
    """Equivalence classes: columns and limits, as `gpupif.risk` takes them."""

    quasi_identifiers: Columns = setting([], "Columns by which people may be found again; none: no classes.")
    sensitive: Columns = setting([], "Columns that nobody is to learn.")
    k: Annotated[int, Field(ge=1)] = setting(5, "Classes of fewer rows are counted apart.")
    l: Annotated[int, Field(ge=1)] | None = setting(None, "Of recursive (c,l)-diversity.", 2)  # noqa: E741
    threshold: Annotated[Number, Field(gt=0, le=1)] | None = setting(
        None, "A risk above it counts as at risk; left out: 1/k.", 0.2
    )
    household: str | None = setting(
        None, "A column of the same value in all rows of a household; score.columns need not have it.", "household"
    )
    sampling_fraction: Annotated[Number, Field(gt=0, le=1)] | None = setting(
        None, "Share of the population in the table, a simple random sample; estimates uniques.", 0.01
    )
    population_size: Annotated[int, Field(ge=1)] | None = setting(
        None, "In its place: the people of that population.", 1_000_000
    )
    max_global_risk: Annotated[Number, Field(gt=0, le=1)] | None = setting(
        None, "Highest share of the rows that may be re-identified; gives a threshold of risk.", 0.05
    )
    game: GameSettings | None = setting(
        None, "Amounts at stake, for payoffs of attacks.", {"adversary_gain": 300, "adversary_cost": 4}
    )

    def faults(self) -> Iterator[tuple[str, str]]:
        for key in ("sensitive", "household", "sampling_fraction", "population_size", "max_global_risk", "game"):
            if getattr(self, key) and not self.quasi_identifiers:
                yield key, "expected quasi_identifiers beside it, got none. Add them, or remove it."
        if self.population_size is not None and self.sampling_fraction is not None:
            yield "population_size", "expected it or sampling_fraction, which is there too. Remove one of them."
        both = [name for name in self.sensitive if name in self.quasi_identifiers]
        if both:
            yield "sensitive", f"expected other columns than quasi_identifiers has, got {both[0]!r} in both."


class RunSettings(Section):
    """The run: its state folder, device, memory and threads."""

    state: str = setting(
        "gpupif-nightly", "Folder of the state and the record; nobody else may write to it.", path=READ
    )
    device: str = setting("auto", "'auto', 'cpu', 'cuda' or 'cuda:0'.")
    memory_limit: str | None = setting(None, "Such as '8GiB'; left out: 60 % of what is free.", "8GiB")
    threads: Annotated[int, Field(ge=1)] | None = setting(None, "Threads; left out: one for each core.", 4)
    temp: str | None = setting(
        None, "Folder of temporary files; left out: within the state.", "/var/tmp", path=WORKED_IN
    )
    show_values: bool = setting(False, "Whether values of the table may be in logs, reports and the record.")

    def faults(self) -> Iterator[tuple[str, str]]:
        yield from (("device", said) for said in _said_by(split_device, self.device))
        if self.memory_limit is not None:
            yield from (("memory_limit", said) for said in _said_by(parse_size, "memory_limit", self.memory_limit))
        yield from self.blank("state", "temp")


class KeepSettings(Section):
    """The scores and runs that are kept."""

    scores: Literal["none", "cells", "all"] = setting(
        "none", "Of the scores: 'none', 'cells' (those where a condition holds), or 'all'."
    )
    where: str | None = setting(None, "Which cells, for scores = 'cells': 'cig >= 3'.", "cig >= 3")
    runs: Annotated[int, Field(ge=1)] | None = setting(
        None, "So many runs at least are kept; older ones go; left out: all.", 30
    )
    days: Annotated[int, Field(ge=1)] | None = setting(None, "Runs of so many days are kept too.", 90)

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.scores == "cells" and self.where is None:
            yield "where", "expected a condition, for scores = 'cells'; got none. Add where = 'cig >= 3', say."
        if self.scores != "cells" and self.where is not None:
            yield "where", f"expected it with scores = 'cells' only, got scores = {self.scores!r}. Remove one of them."
        if self.where is not None:
            from ...results.cell_condition import parse_condition

            yield from (("where", said) for said in _said_by(parse_condition, self.where))


class GateSettings(Section):
    """A gate: something measured, and limits on it, or on its change since the last good run.

    Which of the further keys a kind takes is said by its entry in `gates.GATES`.
    """

    kind: str = Field(description="What is measured; see the page on nightly runs.")
    name: str | None = setting(None, "How it is called; left out: after what it measures.", "our own")
    percentile: Annotated[Number, Field(ge=0, le=100)] | None = setting(None, "Which percentile.", 95.0)
    measure: str | None = setting(None, "Of which measure.", "cig")
    column: str | None = setting(None, "Of which column; left out, where that makes sense: the worst of all.", "age")
    attacker: str | None = setting(None, "Against which attacker; left out: the worst of all.", "neighbour")
    above: Number | None = setting(None, "Cells above which score are counted.", 5.0)
    max: Number | None = setting(None, "The gate fails above this.", 3.0)
    min: Number | None = setting(None, "The gate fails below this.", 1.0)
    max_rise: Annotated[Number, Field(ge=0)] | None = setting(
        None, "The gate fails where it rose by more since the last good run.", 0.1
    )
    max_fall: Annotated[Number, Field(ge=0)] | None = setting(
        None, "The gate fails where it fell by more since the last good run.", 0.1
    )
    treated: bool = setting(False, "Measure the treated table of [release] in place of the input; of classes only.")

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by key."""
        return {key: getattr(self, key) for key in LIMITS if getattr(self, key) is not None}

    def faults(self) -> Iterator[tuple[str, str]]:
        if not self.limits:
            yield "max", f"expected a limit, {', '.join(LIMITS[:-1])} or {LIMITS[-1]}; got none. Add one."
        if self.max is not None and self.min is not None and self.min > self.max:
            yield "min", f"expected at most what max is, {self.max:g}; got {self.min:g}. Nothing would pass."
        if self.name is not None and not (self.name.strip() and self.name.isprintable()):
            yield "name", f"expected text that can be printed, got {self.name!r}. Write some."


class WebhookSettings(Section):
    """A webhook that the outcome is posted to."""

    url: str = Field(
        examples=["${RISK_WEBHOOK}"],
        description="'${RISK_WEBHOOK}': from the environment, so that it stands in no file.",
    )
    format: Literal["json", "openlineage"] = setting("json", "'json', or 'openlineage'.")
    when: Literal["always", "failed"] = setting("always", "After every run, or where a gate or it failed.")
    timeout: Annotated[Number, Field(gt=0)] = setting(10.0, "Seconds that one attempt may take.")
    retries: Annotated[int, Field(ge=0)] = setting(3, "Attempts after the first.")
    headers: dict[str, str] = setting(
        {}, "Such as Authorization = 'Bearer ${RISK_TOKEN}'.", {"Authorization": "Bearer ${RISK_TOKEN}"}
    )

    def faults(self) -> Iterator[tuple[str, str]]:
        if not self.url.startswith(("https://", "http://")):
            yield "url", "expected an address that begins with https:// or http://, got another. Write it in full."
        for name, value in self.headers.items():
            if not (name.isascii() and name.isprintable() and value.isprintable()):
                yield "headers", f"expected headers of one line each, got {name!r}, which has other signs."


class TellSettings(Section):
    """Reports, beside the terminal."""

    json_file: str | None = setting(None, "File of the outcome as JSON.", "risk.json", path=WRITTEN)
    markdown: str | None = setting(None, "File of the outcome as Markdown, for CI systems.", "risk.md", path=WRITTEN)
    junit: str | None = setting(None, "File of the gates as JUnit XML, for CI systems.", "risk.xml", path=WRITTEN)
    prometheus: str | None = setting(
        None,
        "File of metrics, for node_exporter's textfile collector.",
        "/var/lib/node_exporter/gpupif.prom",
        path=WRITTEN,
    )
    log: Literal["text", "json"] = setting("text", "How lines of the log are written to standard error.")
    webhooks: list[WebhookSettings] = setting([], "Addresses that the outcome is posted to.")

    def faults(self) -> Iterator[tuple[str, str]]:
        yield from self.blank("json_file", "markdown", "junit", "prometheus")
        if self.prometheus is not None and self.prometheus.strip() and Path(self.prometheus).suffix != ".prom":
            yield (
                "prometheus",
                f"expected a file that ends in .prom, got {self.prometheus!r}. No other one is collected.",
            )


class CountTableSettings(Section):
    """A table of counts or sums that is released, as `gpupif.tables` takes it."""

    by: Columns = Field(description="Columns whose combinations are counted.", examples=[["sex", "age"]])
    output: str = setting(..., "File of the cells: .csv, .parquet or .feather.", "counts.csv", path=WRITTEN)
    round: Annotated[int, Field(ge=2)] | None = setting(None, "Base of rounding; left out: figures stay.", 3)
    method: Literal["nearest", "random", "controlled", "cell-key"] = setting("nearest", "How to round.")
    value: str | None = setting(None, "A column to sum, in place of counts.", "income")
    weights: str | None = setting(None, "A column of sampling weights.", "weight")
    suppress_below: Annotated[int, Field(ge=2)] | None = setting(
        None, "Suppress cells of fewer rows, and what protects them.", 3
    )
    dominance: list[Number] | None = setting(None, "Of sums: [n, k], see the page on count tables.", [2, 85])
    p_percent: Number | None = setting(None, "Of sums: the p % rule.", 10)
    width: Number | None = setting(None, "Least width of the bounds of a suppressed cell.", 2)
    record_id: Columns | None = setting(None, "Of cell keys: columns that identify a row; left out: all.", ["person"])
    p_table: str | None = setting(None, "Of cell keys: file of the probabilities of noise.", "p.csv", path=READ)
    missing: Literal["category", "error"] = setting("category", "What a missing value is.")
    totals: bool = setting(True, "Whether totals are released.")
    total: str = setting("Total", "What marks a total.")

    def faults(self) -> Iterator[tuple[str, str]]:
        if not self.by:
            yield "by", "expected at least one column, got none. Name one."
        yield from self.blank("output", "p_table")

    @property
    def is_keyed(self) -> bool:
        """True if the secret key decides the figures."""
        return self.method in ("random", "cell-key")


# The keys of [release] that go together.
RELEASED_TOGETHER = (("plan", "output"), ("queries", "ledger", "answers"))


class ReleaseSettings(Section):
    """The release, if no gate fails: a treated table, answers charged to a ledger, tables of counts."""

    plan: str | None = setting(None, "Plan of treatments, as gpupif treat takes it.", "plan.toml", path=READ)
    output: str | None = setting(
        None, "File of the treated table: .parquet, .csv or .feather.", "treated.parquet", path=WRITTEN
    )
    queries: str | None = setting(None, "File of queries, as gpupif release takes it.", "q.toml", path=READ)
    ledger: str | None = setting(
        None, "Ledger that they are charged to; gpupif budget makes it.", "ledger.json", path=READ
    )
    answers: str | None = setting(
        None, "File of the answers, which may be published: .json.", "answers.json", path=WRITTEN
    )
    draw_again: int | None = setting(
        None, "Charge whose answers a crash lost: charge again, and draw them anew. For a single run.", 3
    )
    key: str | None = setting(
        None, "File of the secret key of random treatments and count tables.", "release.key", path=READ
    )
    tables: list[CountTableSettings] | None = setting(
        None, "Tables of counts or sums.", [{"by": ["sex", "age"], "round": 3, "output": "counts.csv"}]
    )

    def faults(self) -> Iterator[tuple[str, str]]:
        paths = ("plan", "output", "queries", "ledger", "answers", "key")
        yield from self.blank(*paths)
        for together in RELEASED_TOGETHER:
            lacks = [key for key in together if getattr(self, key) is None]
            if len(lacks) < len(together):
                yield from ((key, f"expected it beside {together[0]}, got nothing. Add it.") for key in lacks)
        if self.draw_again is not None and self.queries is None:
            yield "draw_again", "expected it with queries only, and there are none. Remove it."
        drawn = [table for table in self.tables or () if table.is_keyed]
        if drawn and self.key is None:
            yield "key", f"expected the file of a secret key, which method = {drawn[0].method!r} needs. Add it."

    @property
    def outputs(self) -> dict[str, str]:
        """The files that are released, by their keys."""
        named = {f"release.{key}": path for key in ("output", "answers") if (path := getattr(self, key)) is not None}
        return named | {f"release.tables[{n}].output": own.output for n, own in enumerate(self.tables or ())}


class Settings(Section):
    """The whole configuration."""

    input: InputSettings
    score: ScoreSettings = ScoreSettings()
    risk: RiskSettings = RiskSettings()
    run: RunSettings = RunSettings()
    keep: KeepSettings = KeepSettings()
    gates: list[GateSettings] = []
    release: ReleaseSettings = ReleaseSettings()
    tell: TellSettings = TellSettings()

    def faults(self) -> Iterator[tuple[str, str]]:
        if self.input.connection is not None:
            if self.release.plan is not None:
                yield "release", "a plan treats files: expected it with input.path, got input.connection. Remove it."
            if self.release.queries is not None and self.input.watermark is None:
                yield (
                    "release",
                    "queries on a database need input.watermark: without it nobody can tell whether a night is run "
                    "again, and each run would be charged. Add it.",
                )
        times = Counter(gate.name for gate in self.gates if gate.name is not None)
        for name, several in times.items():
            if several > 1:
                yield "gates", f"expected gates of different names, got {several} called {name!r}. Rename them."
