"""The first configuration: made from a look at the table."""

from __future__ import annotations

import math
import os
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.configuration.new_config import init
from gpupif.nightly.gates.gates import resolve_gates

RANDOM = np.random.default_rng(19)
TABLE = pd.DataFrame(
    {
        "id": range(1, 101),
        "age": RANDOM.permutation([20, 30, 40, 50] * 25),
        "sex": RANDOM.permutation(["f", "m"] * 50),
        "${town}": RANDOM.permutation(["A", "B", "C", None] * 25),
        "religion": RANDOM.permutation(["x", "y", "y", "z"] * 25),
        "pweight": [1.5, 2.5, 4.0, 2.0] * 25,
        "source": ["s"] * 100,
    }
)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table in a file, in a folder below the working one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    TABLE.to_parquet(tmp_path / "data" / "people.parquet")
    return tmp_path / "data" / "people.parquet"


def test_a_new_configuration_has_the_path_columns_and_attacker(table, tmp_path):
    seen = init("data/people.parquet")
    assert seen.rows == 100
    assert (tmp_path / "risk.toml").stat().st_mode & 0o077 == 0
    config = load_config("risk.toml")
    settings = config.settings
    assert (settings.input.path, settings.input.row_key) == ("data/people.parquet", ["id"])
    assert config.table == table
    assert settings.score.columns == ["age", "sex", "${town}", "religion"]
    assert settings.score.known == settings.risk.quasi_identifiers == ["age", "sex", "${town}"]
    assert settings.risk.sensitive == ["religion"]
    assert settings.score.weights == "pweight"
    limits = {gate.name: gate.limits for gate in settings.gates}
    assert limits == {
        "rows": {"max": 120, "min": 80},
        "missing share": {"max": 0.3},
        # A twentieth, or a hundredth of the rows, above what they are now, rounded up to hundredths.
        "PIF 95": {"max": 2.03, "max_rise": 0.1},
        "unique share": {"max": 0.02, "max_rise": 0.01},
        "share below k": {"max": 0.81, "max_rise": 0.01},
    }
    scores = gpupif.score(table, columns=settings.score.columns, known=settings.score.known, weights="pweight")
    classes = gpupif.risk(table, settings.score.known, weights="pweight").classes
    assert limits["PIF 95"]["max"] == math.ceil(100 * 1.05 * scores.pif(95)) / 100
    assert limits["unique share"]["max"] == math.ceil(100 * (classes.unique_share + 0.01)) / 100
    assert limits["share below k"]["max"] == math.ceil(100 * (classes.share_below + 0.01)) / 100
    text = (tmp_path / "risk.toml").read_text()
    assert "# Not scored: 'id' (identifier), 'pweight' (weight), 'source' (leave out).\n" in text
    assert "It says when risk is higher than now, not that it may be as high" in text.replace("\n# ", " ")
    assert '# [[gates]]\n# kind = "k"\n# min = 5\n' in text
    assert max(map(len, text.splitlines())) <= 120
    # Apart from what was seen, all is as it is by itself.
    untouched = load_config("risk.toml", ["score={}", "risk={}", "gates=[]", "input={path='a'}"])
    (tmp_path / "least.toml").write_text("[input]\npath = 'a'\n")
    assert untouched.document == load_config("least.toml").document


def test_the_examples_in_comments_can_be_put_in(table, tmp_path):
    init(table)
    lines = (tmp_path / "risk.toml").read_text().splitlines()
    start = next(place for place, line in enumerate(lines) if line == "# [[gates]]")
    stop = next(place for place, line in enumerate(lines) if line == "[tell]")
    words = ("# [[", "# kind", "# max", "# min", "# percentile", "# column")
    lines[start:stop] = [line.removeprefix("# ") if line.startswith(words) else line for line in lines[start:stop]]
    (tmp_path / "risk.toml").write_text("\n".join(lines))
    settings = load_config("risk.toml").settings
    resolve_gates(settings)
    names = [gate.name for gate in settings.gates]
    assert names[5:] == ["k", "new values of age", "distinct l"]


def test_no_limit_is_proposed_on_a_share_of_unique_rows_of_one(tmp_path):
    """If every row is unique, a limit on their share cannot fail."""
    pd.DataFrame({"age": range(60), "sex": ["f", "m"] * 30}).to_csv(tmp_path / "t.csv", index=False)
    init(tmp_path / "t.csv", tmp_path / "risk.toml")
    gates = {gate.name: gate.limits for gate in load_config(tmp_path / "risk.toml").settings.gates}
    assert gates["unique share"] == {"max_rise": 0.01}
    assert "which no limit below all rows leaves room above" in (tmp_path / "risk.toml").read_text().replace(
        "\n# ", " "
    )


@pytest.mark.parametrize(
    ("given", "place", "written"),
    [
        ("data/people.parquet", "risk.toml", "data/people.parquet"),
        ("data/*.parquet", "risk.toml", "data/*.parquet"),
        ("data", "risk.toml", "data"),
        ("data/people.parquet", "data/risk.toml", "people.parquet"),
        ("data/../data/people.parquet", "data/risk.toml", "people.parquet"),
        ("data/people.parquet", "other/risk.toml", None),
    ],
)
def test_paths_beneath_the_file_are_written_relative_to_it(table, tmp_path, given, place, written):
    (tmp_path / "other").mkdir()
    init(given, place)
    config = load_config(place)
    assert config.settings.input.path == (written or str(tmp_path / given))
    assert config.table.exists() or "*" in given


def test_paths_and_separators_with_special_signs_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from gpupif.io.paths import find_input

    for name in ("~a${b}.csv", 'c"d.csv'):
        (tmp_path / name).write_text("sex;age\nf;3\nm;4\nf;3\n")
        init(find_input(tmp_path / name, ";"), "risk.toml", overwrite=True)
        config = load_config("risk.toml", environ={})
        assert config.settings.input.separator == ";"
        assert config.table.samefile(tmp_path / name)


@pytest.mark.parametrize("columns", [["id"], ["religion"], ["source"], ["id", "religion", "pweight"]])
def test_a_table_with_few_scored_columns_gets_a_configuration(tmp_path, columns):
    """The table has no quasi-identifiers, or no column to score."""
    TABLE[columns].to_csv(tmp_path / "t.csv", index=False)
    init(tmp_path / "t.csv", tmp_path / "risk.toml")
    settings = load_config(tmp_path / "risk.toml").settings
    assert settings.score.columns == (["religion"] if "religion" in columns else None)
    assert settings.risk.quasi_identifiers == settings.risk.sensitive == []
    assert [gate.kind for gate in settings.gates] == ["rows", "missing_share", "pif"]
    assert settings.input.row_key == (["id"] if "id" in columns else [])
    resolve_gates(settings)


def test_given_roles_replace_the_proposed_ones(table, tmp_path):
    roles = dict.fromkeys(TABLE, "leave out") | {"sex": "quasi-identifier", "${town}": "sensitive"}
    seen = init(table, roles=roles)
    assert dict(seen.roles) == dict(zip(seen.columns["column"], seen.columns["role"], strict=True)) == roles
    settings = load_config(tmp_path / "risk.toml").settings
    assert (settings.score.columns, settings.score.known) == (["sex", "${town}"], ["sex"])
    assert (settings.risk.sensitive, settings.score.weights) == (["${town}"], None)
    assert "the roles that were given" in " ".join((tmp_path / "risk.toml").read_text().replace("#", "").split())
    with pytest.raises(gpupif.InputError, match="expected a role for each column"):
        init(table, overwrite=True, roles={"sex": "sensitive"})


def test_a_new_configuration_has_no_value_of_the_table(table, tmp_path):
    frame = TABLE.assign(age=RANDOM.permutation([1234567, 7654321] * 50), religion=["Qwx", "Vvy"] * 50)
    frame.to_parquet(table)
    init(table)
    text = (tmp_path / "risk.toml").read_text()
    assert not [value for value in ("1234567", "7654321", "Qwx", "Vvy") if value in text]


def test_an_existing_configuration_is_kept_without_overwrite(table, tmp_path):
    file = tmp_path / "risk.toml"
    file.write_text("mine")
    with pytest.raises(gpupif.errors.OutputError, match=r"risk.toml: exists already"):
        init(table)
    assert file.read_text() == "mine"
    init(table, overwrite=True)
    assert tomllib.loads(file.read_text())["input"]["path"] == "data/people.parquet"


@pytest.mark.parametrize(
    ("given", "place", "error", "words"),
    [
        (
            "postgresql://ann:geheim@db/people",
            "risk.toml",
            gpupif.InputError,
            r"^postgresql://\.\.\.: expected the path of a table, got an address.* input.connection and input.query",
        ),
        (Path("duckdb:///people.db"), "risk.toml", gpupif.InputError, r"^duckdb://\.\.\.: expected the path"),
        ("none.csv", "risk.toml", gpupif.errors.TableReadError, "none.csv: no such file"),
        ("data/people.parquet", "risk.json", gpupif.errors.OutputError, "ending in .toml"),
        ("data/people.parquet", "none/risk.toml", gpupif.errors.OutputError, "there is no folder none"),
        ("data/people.parquet", 3, gpupif.InputError, "path: expected the path of a .toml file, got 3"),
    ],
)
def test_tables_and_places_that_do_not_fit_are_refused(table, given, place, error, words):
    before = set(os.listdir())
    with pytest.raises(error, match=words):
        init(given, place)
    assert set(os.listdir()) == before
