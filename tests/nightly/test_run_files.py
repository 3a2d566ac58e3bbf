"""No file that a nightly run writes is one that it reads: all paths of the schema."""

from __future__ import annotations

import os
from typing import Any, get_args

import pytest

from gpupif.errors import InputError
from gpupif.nightly import run
from gpupif.nightly.configuration.run_files import paths_of
from gpupif.nightly.configuration.settings import PATH, READ, WORKED_IN, WRITTEN, Section, Settings

LINKS = {"same": None, "symbolic link": os.symlink, "hard link": os.link}
# All keys whose values are texts and no paths: a new key has to be put here, or to say how its path is used.
TEXTS = {
    *("input.separator", "input.connection", "input.query", "input.driver", "input.watermark", "input.row_key"),
    *("input.on_schema_change", "score.columns", "score.measures", "score.known", "score.attackers", "score.weights"),
    *("score.missing", "score.population_lacks", "score.dtype", "score.known.among", "score.attackers.among"),
    *("risk.quasi_identifiers", "risk.sensitive", "risk.household", "run.device", "run.memory_limit", "keep.scores"),
    *("keep.where", "gates.kind", "gates.name", "gates.measure", "gates.column", "gates.attacker", "tell.log"),
    *("tell.webhooks.url", "tell.webhooks.format", "tell.webhooks.when", "tell.webhooks.headers"),
    *("release.tables.by", "release.tables.method", "release.tables.value", "release.tables.weights"),
    *("release.tables.record_id", "release.tables.missing", "release.tables.total"),
}
READS = [
    *("input.path", "score.population", "score.priors", "score.accuracies", "score.distances.age", "release.plan"),
    *("release.queries", "release.ledger", "release.key", "release.tables.0.p_table"),
]
WRITES = ["tell.json_file", "tell.markdown", "tell.junit", "tell.prometheus"]
WRITES += ["release.output", "release.answers", "release.tables.0.output"]
# A value for each key, so that all that go together are there.
BASE = [
    'input.path="people.csv"',
    'release={plan="plan.toml", output="treated.csv", queries="q.toml", ledger="led", answers="answers.json"}',
    'release.tables=[{by=["sex"], output="counts.csv"}]',
]


def types_in(annotation):
    yield annotation
    for part in get_args(annotation):
        yield from types_in(part)


def keys_of(section: type[Section], before=()):
    """Yield each key with the types in its own, and the use of its path."""
    for name, field in section.model_fields.items():
        kinds, key = list(types_in(field.annotation)), (*before, name)
        yield ".".join(key), kinds, (field.json_schema_extra or {}).get(PATH)
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from keys_of(kind, key)


def test_every_text_of_the_schema_is_a_path_with_a_use_or_no_path():
    by_use: dict[Any, set[str]] = {}
    for key, kinds, use in keys_of(Settings):
        if use is not None or str in kinds or any(isinstance(kind, str) for kind in kinds):
            by_use.setdefault(use, set()).add(key)
    assert by_use[None] == TEXTS
    assert by_use[READ] - {"run.state"} == {key.replace(".0", "").replace(".age", "") for key in READS}
    assert by_use[WRITTEN] == {key.replace(".0", "") for key in WRITES}
    assert by_use[WORKED_IN] == {"run.temp"}


def test_paths_are_found_in_values_of_any_type():
    assert dict(paths_of({}, READ)) == {"run.state": "gpupif-nightly"}
    wrong = {"input": 3, "release": {"tables": [{"output": "a.csv"}, 4]}, "score": {"distances": {"age": ["a"]}}}
    assert dict(paths_of(wrong, WRITTEN)) == {"release.tables[0].output": "a.csv"}
    found = dict(paths_of({"score": {"distances": {"a": "x.csv", "b": "ordered"}}}, READ))
    assert found == {"score.distances.a": "x.csv", "run.state": "gpupif-nightly"}


@pytest.fixture
def refused(tmp_path):
    """Run a configuration that has to be refused in one line before anything is read or made."""
    config = tmp_path / "risk.toml"
    config.write_text("")

    def refuse(*overrides):
        before = {file: file.is_file() and file.read_bytes() for file in tmp_path.rglob("*")}
        with pytest.raises(InputError) as raised:
            run(config, overrides=[*BASE, *overrides])
        assert {file: file.is_file() and file.read_bytes() for file in tmp_path.rglob("*")} == before
        (line,) = str(raised.value).splitlines()
        return line

    return refuse


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("written", WRITES)
def test_no_report_and_no_release_replaces_an_input(tmp_path, refused, written, kind):
    for read in READS:
        # Only such files are collected, and only such files are hierarchies.
        name = "in.prom" if written == "tell.prometheus" and "distances" not in read else "in.json"
        out = name if kind == "same" else f"out{'.prom' if written == 'tell.prometheus' else '.csv'}"
        if kind == "same" and written == "tell.prometheus" and name != "in.prom":
            continue
        (tmp_path / name).write_text("nothing that anybody reads")
        if kind != "same":
            LINKS[kind](tmp_path / name, tmp_path / out)
        line = refused(f'{read}="{name}"', f'{written}="{out}"')
        assert f"{out}: the output is the input {tmp_path / name}" in line
        for left in {name, out}:
            (tmp_path / left).unlink()


@pytest.mark.parametrize("written", WRITES)
def test_nothing_is_written_in_place_of_the_configuration_the_state_or_another_output(tmp_path, refused, written):
    ending = ".prom" if written == "tell.prometheus" else ".json"
    (tmp_path / f"link{ending}").symlink_to(tmp_path / "risk.toml")
    assert "the output is the input" in refused(f'{written}="link{ending}"')
    assert "(run.state)" in refused(f'{written}="gpupif-nightly/a{ending}"')
    (tmp_path / "other").symlink_to(tmp_path / "nights")
    assert "(run.state)" in refused('run.state="nights"', f'{written}="other/a{ending}"')
    for other in set(WRITES) - {written, "tell.prometheus"}:
        assert "names the same file as" in refused(f'{written}="a{ending}"', f'{other}="A{ending}"')


def test_files_that_a_plan_or_a_query_names_and_databases_are_inputs(tmp_path, refused):
    for file in ("age.csv", "people.db", "people.csv", "link.json"):
        (tmp_path / file).write_text("nothing that anybody reads")
    (tmp_path / "plan.toml").write_text('hierarchies.age = "age.csv"')

    assert "age.csv (release.plan)" in refused('tell.json_file="age.csv"')
    database = 'input={connection="duckdb:///people.db", query="SELECT * FROM read_csv(\'%s\')"}'
    alone = [database % f"{tmp_path}/*.csv", "release={}"]
    assert "(input.connection)" in refused(*alone, 'tell.json_file="people.db"')
    assert "(input.query)" in refused(*alone, 'tell.json_file="people.csv"')
