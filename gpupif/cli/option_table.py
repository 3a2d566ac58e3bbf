"""The table of all options, from which each command's options, their help, and a part of the reference are made.

A line that is not indented begins a section: the name of a command, or with a plus that of a group of options. Behind
"of" are the public functions that the command calls. A section has rows; a row goes on in lines that are indented more:

    name and what is typed | value in the help | how text becomes a value, default, panel | help

To add an option to a command, add a row to its section, such as

    threshold | 0.2 | float | A higher risk counts as at risk. Default: 1/k.

or, for an option that has a row elsewhere, its name. The name is that of the function's parameter: the command passes
the value on by itself. What is typed is the same name if nothing else is said. The third field has these words:

    names, path, flag, ...: a key of `option_values.KINDS`; without it, the type of the parameter
    argument, required: a place on the command line in place of an option; an option that has to be given
    =20: the default. Without it, the default of the parameter
    ~auto: what the help says for a default that the function or the environment chooses; the default is None
    @output: the panel of the help, a key of PANELS

A line without bars names rows of groups, or with a plus a whole group. Where groups have two rows for an option, a
word with a colon before the name tells them apart. The help lists the options of a panel in the order of the rows.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .option_values import KINDS

PANELS = {
    "attack": "Attackers, and what they know",
    "table": "Table and population",
    "game": "Cost and benefit of attacks (any of these has them found)",
    "cells": "Some cells, or a summary, in place of all scores",
    "suppression": "Suppression, audited by linear programs",
    "key": "Cell keys (--method cell-key)",
    "smallest": "Smallest sets of columns that tell rows apart",
    "output": "Output",
    "place": "Where to compute, and within what",
}
# Kinds that types of parameters are, where a row has none.
NATURAL = {"int": "int", "float": "float", "bool": "flag"}
# Words of what has to be given, and of what has a place in place of a name.
PLACES = {"required", "argument"}
BAR = re.compile(r" \|(?= )")
# A bar with a space on each side stands between the fields; the bars of a value have none.
OPTIONS = """
+shared
  table | | path argument | Parquet, CSV or Feather file, folder of Parquet, or 'data/**/*.csv'.
  roles | FILE.toml | path | Roles of the columns, as gpupif inspect writes them, for what no other option says.
  hierarchies | H.toml | path | Hierarchies of the columns: the table 'hierarchies' in a file of TOML, JSON or YAML,
    such as a plan. For each column { widths = [5, 10, 20] }, { digits = 3 }, { first = [3, 1] }, { dates = ['month',
    'year'] }, or the path of a .csv file as ARX keeps them. Those that it lacks are proposed.
  quasi_identifiers | A,B | names | Columns that an attacker may know of a person; or give --roles.
  distances --distance | C=ordered|nominal|FILE | distances @attack | How far values are apart (emd, t-closeness).
    FILE.csv: a hierarchy as ARX keeps them, lines of value;level1;...;*. FILE.json: a list of values in order, or a
    hierarchy, {"value": ["part of", ...]}. May be repeated. Default: numbers and dates are ordered.
  attacker_any | NAME=R | texts @attack | Another of them: any R of the other columns.
  weights | COLUMN | @table | Column of sampling weights: people that a row stands for.
  missing | category|error | @table | Missing values: one more value, or refuse.
  missing_or_wildcard: missing | category|error|wildcard | @table | Missing values: one more value, refuse, or match
    any.
  population_lacks | error|count | text =error @table | Rows that the population lacks: refuse, or count them in it.
  sep | CHARACTER | text @table | Separator of a CSV file. Default: found by itself.
  device | auto|cpu|cuda | text ~auto @place | Where to compute.
  gpu_grouping | auto|cudf|rotation | text ~auto @place | How a GPU finds rows that agree: hashed by cuDF (auto: where
    installed), or sorted (rotation).
  memory_to_take: memory_limit | 2GiB | text @place | Memory to take. Default: 60 % of what is free.
  compression | auto|zstd|lz4|snappy|none | text ~auto @output | Of what is written; auto is zstd, of Feather lz4, of
    CSV none.
  overwrite | | flag @output | Replace an output that exists.
  resume | | flag @output | Go on where a run that was killed stopped.
  keep_unmet | | flag @output | Write also what does not meet its criteria; the exit code is 3 all the same.
  report | FILE.html | path @output | Write a report with figures too, for a browser: see gpupif report.
  redact | | flag | Hide values, figures that tell them, and folders, in the report file alone.
  as_json --json | | flag | Print one JSON document instead, and nothing else.
  quiet --quiet -q | | flag | Print nothing but errors.
  file | FILE.toml | path argument | The configuration, as init writes it.
  overrides --set | KEY=VALUE | settings | Use this in place of what FILE says: run.device=cpu.
+read
  as_json quiet sep
  memory_limit | 2GiB | text @place | Memory to take; the table is then read in streams.
  temp | FOLDER | path @place | For temporary files. Default: the system's.
+cluster
  +read
  scheduler | tcp://HOST:8786 | text @place | Compute on the Dask cluster there.
  workers | N | int @place | Compute on a Dask cluster of N processes here.
+figures
  population | FILE | population @table | The population that TABLE is a part of: journalist risk, k-map, presence.
  population_lacks
  sampling_fraction | 0.01 | @table | Share of the population that TABLE is a random sample of.
  population_size | N | @table | People in that population, instead of --sampling-fraction.
  game --publisher-benefit | 1200 | game @game | What each row that is published brings.
  publisher_loss | 300 | float @game | What each person costs the publisher who is re-identified.
  adversary_gain | 300 | float @game | What each such person brings the adversary.
  adversary_cost | 4 | float @game | What each attempt costs the adversary.
  weights
  household | COLUMN | @table | Rows of a household have the same value there: risk that one is found.
  missing_or_wildcard
inspect of inspection.inspect.inspect
  table
  output -o --output | | path @output | Write the proposed roles to this .toml file, to be edited.
  overwrite +cluster
score of scoring.files.score_files
  table
  output -o --output | | path @output | Scores: .parquet, .csv, .feather, or a folder.
  columns | A,B | names | Columns to score. Default: all.
  roles
  measures | M,M | names =cig,csf,wcig | Any that gpupif measures lists.
  where | 'csf > 0.9' | @cells | Write only cells where it holds, a row each.
  min_cig | BITS | float @cells | Only cells of so much CIG: --where 'cig >= BITS'.
  top | N | @cells | Write only the N riskiest cells, or the riskiest of those.
  by | MEASURE | @cells | By which --top goes. Default: CIG, or the first scored.
  summary_only | | flag @cells | Write no scores; --output, if given, is a .json file for the summary.
  known | A,B | names @attack | Columns the attacker knows. Default: all scored ones.
  known_any | R | int @attack | In place of --known: any R of the other columns; worst and mean.
  among | A,B | names @attack | Columns that --known-any is of. Default: all scored ones.
  subsets | N | int @attack | With --known-any: a sample of N subsets for each column.
  seed | S | int =0 @attack | By which --subsets are drawn.
  priors | FILE | priors @attack | Of scored columns: .json, {"column": {"value": 0.5}}, or a table: column, value,
    probability.
  accuracies | FILE | accuracies @attack | Of scored columns: .json, {"column": 0.9}, or a table: column, accuracy.
  accuracy | COLUMN=0.9 | texts @attack | How far what is concluded about a scored column is trusted, 0 to 1; may be
    repeated.
  distances
  attackers --attacker | NAME=A,B | texts @attack | One of several attackers, and the columns it knows; may be repeated.
  attacker_any weights
  population | TABLE | population @table | The population that TABLE is a sample of: priors, sizes.
  population_lacks missing_or_wildcard device gpu_grouping
  dtype | float64|float32 | @output | Type of the scores.
  keep_input | | flag @output | Put the table's columns first.
  compression overwrite report redact
  rows_per_file | N | @output | Score files of N rows. Default: one for each file of the table.
  resume as_json quiet sep memory_to_take
  temp | FOLDER | path @place | For temporary files. Default: beside the output, or the system's.
  scheduler workers
risk of disclosure.risk.risk
  table quasi_identifiers
  sensitive | C,D | names | Sensitive attributes. Default: only sizes of classes.
  roles
  models | M,M | names | Disclosure measures, see gpupif measures. Default: all.
  l | L | | Of recursive (c,l)-diversity. Default: the distinct l.
  distances
  k | K | | Classes of fewer rows are counted apart.
  threshold | 0.2 | | A higher risk counts as at risk. Default: 1/k.
  groups | N | | How many classes to list of each kind.
  max_global_risk | 0.01 | @table | Acceptable re-identifications per row: the risk above which to protect rows.
  device gpu_grouping report redact overwrite +figures +cluster
global-risk of disclosure.global_risk.global_risk
  table quasi_identifiers roles weights
  sampling_fraction | 0.01 | @table | Instead of weights: share of the population that TABLE is.
  interactions | two-way|A:B,A:C | interactions @table | Interactions of the model: of all pairs, or these. Default:
    none.
  missing device +cluster
toxic of marginals.toxic_pairs.toxic_pairs marginals.quasi_identifiers.quasi_identifiers
  table
  size | 2|3 | ~2 | Pairs or triples of columns.
  columns | A,B | names | Columns that are looked at. Default: all.
  roles
  top | N | | How many to list, of columns and of values.
  weights device missing
  alpha | 0.9 | =None @smallest | List, in place of pairs, the smallest sets that reach this share.
  by | distinction|separation | ~distinction @smallest | Share of what: of the rows, which differ from each other, or of
    the pairs of rows, which differ.
  max_size | N | ~3 @smallest | The most columns of a set.
  +cluster
suda of special_uniques.suda.suda
  table
  columns | A,B | names | The key variables. Default: all.
  roles
  max_size | K | | Sets of up to K columns are searched. Default: 3, or all of fewer columns.
  sampling_fraction | 0.01 | @table | Share of the population that TABLE holds: DIS-SUDA scores.
  top | N | int =10 | How many of the riskiest rows to list.
  output -o --output | | path @output | Scores of all rows, in order: .parquet, .csv or .feather.
  contributions | | flag @output | With --output: also what part of each score comes from each column.
  compression overwrite weights
  missing | category|ignore|wildcard|error | @table | Missing values: one more value, none that tells rows apart (as in
    sdcMicro), any value, or refuse.
  device +cluster
advise of protection.advise.advise
  table hierarchies
  criterion | pif95|k|'max csf'|... | | What is to be less risky: changes are ranked by it.
  columns | A,B | names | Columns that are scored and known. Default: all.
  quasi_identifiers | A,B | names | In place of --columns: those that an attacker may know.
  sensitive | C,D | names | With them: columns that are scored, which stay as they are.
  roles
  attackers --attacker | NAME=A,B | attackers @attack | An attacker, and the columns it knows, for a criterion
    'NAME: ...'; may be repeated.
  attacker_any distances device +figures +cluster
protect of protection.protect.protect
  table
  require | CRITERION | texts | A limit on risk: 'k>=5', 't(ill)<=0.2', 'pif95<=3', 'max csf<=0.9', 'known=3: k>=3',
    ... May be repeated.
  hierarchies
  output --output -o | plan.toml | path | Where the plan goes, for gpupif treat.
  quasi_identifiers | A,B | names | Columns that are made coarser. Default: all that are not sensitive.
  sensitive | C,D | names | What an attacker would learn, for distinct_l, t, ...: stays as it is.
  strata | G | names | Columns that the attacker knows and that stay: criteria hold in each stratum.
  identifiers | E,F | names | Columns that name persons: the plan drops them.
  pseudonymise | E | names | Columns that get pseudonyms in place of being dropped; treat needs --key-file.
  keep | F | names | Columns that stay although they name persons, or look like it.
  roles
  objective | OBJECTIVE | | What is minimised: entropy (bits lost), entropy+suppression, loss, loss_gm, discernibility,
    average_class_size, precision, height, 'utility(COLUMN)' or 'utility(COLUMN, classify)'.
  suppress | 0.04 | | Share of the rows that may be suppressed: in classes, of any attacker, that break a criterion.
  cells | | flag | With --suppress: single cells, as few as it takes. If they are in too many rows, whole rows.
  local --local-recoding | | flag | With --suppress: rows are recoded further, in rounds, before they are suppressed.
  importance | COLUMN=2 | importance | What a bit of a column is worth. Default: 1. May be repeated.
  reference | released|original | | With --suppress: the rows with which t, beta and delta compare classes: those that
    are left, or all (ARX).
  time_limit | SECONDS | seconds | Ends the search with the best plan so far; inf for no limit.
  attackers --attacker | NAME=A,B | attackers @attack | An attacker, and the columns it knows, for criteria 'NAME: ...';
    may be repeated.
  attacker_any distances device gpu_grouping overwrite keep_unmet report redact +figures +cluster
treat of treatment.treat_files.treat_files
  table
  plan | PLAN.toml | path required | The plan: .toml, .json or .yaml.
  output -o --output | | path required @output | Treated table: .parquet, .csv, .feather, or a folder.
  roles
  population | FILE | population @table | The population, if the plan has criteria on it: k-map, ...
  population_lacks
  key --key-file | FILE | path | The secret key by which random treatments draw: 32 bytes.
  seed | S | | In place of a key, for tests only: anyone can find it.
  record | FILE.json | path @output | What was done, with all counts.
  public_record | FILE.json | path @output | The same without counts that reveal.
  sep compression
  rows_per_file | N | @output | Files of N rows. Default: one for each file of the table.
  overwrite keep_unmet resume device memory_to_take
  temp | FOLDER | path @place | For temporary files. Default: beside the output.
  as_json quiet
compare of comparison.compare.compare
  before | BEFORE | path argument | The table: Parquet, CSV or Feather file, or folder of Parquet.
  after | AFTER | path argument | The treated table.
  plan | plan.toml | path | The plan by which it was treated, or the record: levels, which rows went.
  columns | A,B | names | Columns to compare. Default: all.
  quasi_identifiers | A,B | names | Columns that the attacker knows. Default: all that are not sensitive.
  sensitive | C,D | names | Sensitive attributes: for l, t and homogeneous classes.
  roles
  row_id | COLUMN | | Says which rows belong together. Default: their order, and the plan.
  distances
  k | K | | What n / classes is divided by. Default: rows of the smallest class.
  suppressed | both|category|wildcard | | Suppressed cells: a value of their own, anything, or both (the worse is
    reported).
  linkage | auto|exact|none|ROWS | linkage | Find rows again by the nearest row: where values were perturbed, of all
    rows, never, or of so many.
  seed | N | | Of the rows that are drawn for linkage.
  numbers | A,B | names | Columns of numbers to measure. Default: all that changed.
  interval | 0.05 | | Half-width of intervals: standard deviations, and share of ranks.
  weights device report redact overwrite +read
tables of release.tables.tables
  table
  by | A,B | names required | Columns whose combinations are counted, 1 to 4 or so.
  round | 3 | | Base of rounding. Default: figures stay.
  method | nearest|random|controlled|cell-key | | How to round: controlled keeps all totals; cell-key draws noise in
    place of rounding.
  value | COLUMN | | Sum this column in place of counting rows.
  key --key-file | FILE | path | The secret key of random and cell-key: 32 bytes.
  roles
  suppress_below | 3 | @suppression | Suppress cells of fewer rows, and what protects them.
  dominance | N,K | dominance @suppression | Suppress sums whose N largest values are above K percent.
  p_percent | P | @suppression | Suppress sums that give the largest value away to within P %.
  width | W | @suppression | Least width of the bounds of a suppressed cell. Default: --suppress-below less 1; for sums
    any.
  record_id | A,B | names @key | Columns that identify a row. Default: the whole row.
  p_table | FILE.csv | path @key | Columns count, noise, probability. Default: noise of at most 2.
  weights missing
  output -o --output | FILE | path @output | The cells: .csv, .parquet or .feather.
  totals --no-totals | | off @output | Leave totals out.
  total | TEXT | @output | What marks totals.
  report redact overwrite device +cluster
audit of release.audit.audit
  queries | | path argument | Queries: a list 'query' in a file of TOML, JSON or YAML.
  table --table | TABLE | path @table | The table that the queries ask. Default: definitions alone are compared.
  k | ROWS | | The fewest rows of a group that may be given away.
  most | N | | The most queries.
  overlap | ROWS | | The most rows that two queries may have in common.
  bounds --bound | C=LOW:HIGH | bounds | With --table: bounds of a summed column, either may be empty. May be repeated.
  width | W | ~0 | With --bound: report values bounded within this width.
  next | FILE | path | Say whether the queries of this file may be answered too.
  top | N | | How many findings to list.
  report redact overwrite device +cluster
release of release.answers.answer
  table
  budget --ledger | LEDGER | path required | The ledger that is charged, see gpupif budget.
  queries --query | Q.toml | path required | The queries: a list `query` in .toml, .json or .yaml.
  output -o --output | FILE.json | path @output | The answers, which may be published.
  device report redact overwrite +cluster
budget of release.ledger.Budget
  ledger | | path argument | The ledger of a table's releases.
  epsilon | 1 | | Make the ledger if there is none: what all releases may spend, nats.
  delta | 1e-6 | | Of a new ledger. Default: 0.
  neighbours | add-remove|replace | ~add-remove | Of a new ledger: hide whether a person is there, or a person's values.
  contributions | N | | Of a new ledger: the most rows of one person. Default: 1.
  group | N | | Of a new ledger: persons that are protected together. Default: 1.
  report overwrite as_json quiet
report
  source | | path argument | A table; scores that gpupif wrote; a result in JSON; or the configuration of nightly runs
    (.toml).
  output -o --output | FILE.html | path required @output | The report.
  quasi_identifiers
  sensitive | C,D | names | Sensitive attributes of a table. Default: none.
  roles redact
  advice --advice/--no-advice | | flag =None | Say what to do next, for which a table is measured many times. Default:
    for tables of up to a million rows.
  device overwrite +read
measures
  as_json
demo
  rows | | int =1000000 | People in the synthetic census.
  device gpu_grouping as_json
info
  as_json
nightly init
  table
  output -o --output | FILE.toml | path =risk.toml @output | Write the configuration to this file.
  overwrite roles
  require | CRITERION | texts | A limit on risk: 'k>=5', 'pif95<=3', 'max csf<=0.9', ... May be repeated. Default: those
    of the plan; else what offices use.
  plan | plan.toml | path | Release the table as this plan treats it, and limit the risk of that.
  key --key-file | FILE | path | The secret key by which the plan's random treatments draw: 32 bytes.
  +read
nightly run
  file overrides report redact overwrite as_json quiet
nightly history
  file overrides
  as_csv --csv | | flag | Print CSV instead, and nothing else.
  as_json
nightly diff
  file
  run_a | | text argument =None | A number, 'last', or 'good'. Default: the two last runs that came to results.
  run_b | | text argument =None | A number, 'last', or 'good'. Default: the two last runs that came to results.
  overrides
  most --top | N | int =20 | How many cells and rows to list.
  as_json
nightly verify
  file overrides as_json quiet
"""
PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Row:
    """An option or argument of a command.

    name: the parameter of the function. typed: the names on the command line, none for an argument. metavar: the value
    in the help. kind: a key of KINDS. default: None for none; `...` for what has to be given. shown: the default in the
    help, where the function or the environment chooses it. panel: the title of its panel. help: the text.
    """

    name: str
    typed: tuple[str, ...]
    metavar: str | None
    kind: str
    default: Any
    shown: str | None
    panel: str | None
    help: str

    @property
    def option(self) -> str:
        """The long name that is typed; that of the parameter for an argument."""
        return next((name for name in self.typed if name.startswith("--")), self.name)

    @property
    def label(self) -> str:
        """The name in errors, as that of a parameter."""
        return self.option.removeprefix("--").replace("-", "_")


@cache
def sections() -> dict[str, tuple[list[str], list[str]]]:
    """Return the functions and the rows of each section, with the rows of other sections that it names."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    shared: dict[str, str] = {}
    section = ""
    for line in re.sub(r"\n {4,}", " ", OPTIONS).strip().splitlines():
        words = line.split()
        if not line.startswith(" "):
            section, _, functions = line.partition(" of ")
            found[section] = functions.split(), []
        elif BAR.search(line):
            found[section][1].append(line)
            if section.startswith("+"):
                shared[words[0].rstrip(":")] = line
        else:
            for word in words:
                found[section][1].extend(found[word][1] if word.startswith("+") else [shared[word]])
    return found


@cache
def parameters(path: str) -> dict[str, tuple[str, Any]]:
    """Return type and default of each parameter of a function or class, read from its source without an import.

    path: the module in gpupif and the name, such as `disclosure.risk.risk`.
    """
    module, _, name = path.rpartition(".")
    source = PACKAGE.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    start = source.find(f"\ndef {name}(") + 1 or source.index("def __init__(", source.index(f"\nclass {name}"))
    # The signature ends where the docstring begins.
    end = source.index('"""', start)
    signature: Any = ast.parse(f"{source[start:end]}...").body[0]
    named = signature.args.args
    defaults = [None] * (len(named) - len(signature.args.defaults)) + signature.args.defaults
    pairs = zip([*named, *signature.args.kwonlyargs], [*defaults, *signature.args.kw_defaults], strict=True)
    return {
        one.arg: (_kind(one.annotation), None if default is None else ast.literal_eval(default))
        for one, default in pairs
        if one.annotation is not None
    }


def _kind(annotation: Any) -> str:
    """Return the kind of option for a type of Python, or for None beside it."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.right, ast.Constant):
        annotation = annotation.left
    return NATURAL.get(getattr(annotation, "id", ""), "text")


@cache
def rows_of(command: str) -> list[Row]:
    """Return the options and arguments of a command, in the order of its section."""
    functions, lines = sections()[command]
    # The first function decides.
    known = {name: own for function in reversed(functions) for name, own in parameters(function).items()}
    return [_row(line, known) for line in lines]


def _row(line: str, known: dict[str, tuple[str, Any]]) -> Row:
    """Return a row. known: kind and default of the parameters of the command's functions."""
    head, metavar, how, text = map(str.strip, BAR.split(line, 3))
    name, *typed = head.rpartition(": ")[2].split()
    places = PLACES.intersection(how.split())
    words = {word[0] if word[0] in "=~@" else "": word for word in how.split() if word not in PLACES}
    of_function, default = known.get(name, ("text", None))
    kind = words.get("", of_function)
    of_text = KINDS[kind][0]
    if "=" in words:
        default = None if words["="] == "=None" else words["="][1:]
    elif "~" in words:
        default = None
    elif places or of_text is bool:
        default = ... if places else False
    if default not in (None, ...):
        default = of_text(default)
    shown = words["~"][1:] if "~" in words else None
    names = () if "argument" in places else tuple(typed or [f"--{name.replace('_', '-')}"])
    panel = PANELS[words["@"][1:]] if "@" in words else None
    return Row(name, names, metavar or None, kind, default, shown, panel, text)
