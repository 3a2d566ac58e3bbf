"""Configurations of nightly runs: read, checked, with single keys set from outside."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

import gpupif
from gpupif.nightly.configuration.config import RunsPlace, find_runs, load_config
from gpupif.nightly.configuration.settings import AnyKnownSettings, GateSettings
from gpupif.nightly.gates.gate_kinds import gate_names

INPUT = '[input]\npath = "people.csv"\n'
GATE = INPUT + '[[gates]]\nkind = "pif"\npercentile = 95\nmax = 3\n[[gates]]\nname = "own"\nkind = "k"\nmin = 5\n'


@pytest.fixture
def load(tmp_path):
    """Loads a configuration from its text."""

    def loaded(text, *overrides, **environ):
        file = tmp_path / "risk.toml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_config(file, overrides, environ)

    return loaded


@pytest.fixture
def refused(load, tmp_path):
    """What a configuration is refused for, a line each, without the name of the file."""

    def said(text, *overrides, **environ):
        with pytest.raises(gpupif.InputError) as raised:
            load(text, *overrides, **environ)
        assert raised.value.__cause__ is None
        file, first, lines = (
            str(tmp_path / "risk.toml"),
            *str(raised.value).split("\n")[:1],
            str(raised.value).split("\n"),
        )
        assert first.startswith(f"{file}: ")
        assert "Input should" not in str(raised.value)
        if len(lines) == 1:
            return [first.removeprefix(f"{file}: ")]
        assert first == f"{file}: {len(lines) - 1} mistakes:"
        assert all(line.startswith("  ") for line in lines[1:])
        return [line.removeprefix("  ") for line in lines[1:]]

    return said


def test_a_configuration_needs_only_an_input(load, tmp_path):
    config = load(INPUT)
    assert config.settings.input.path == "people.csv"
    assert config.settings.score.measures == ["cig", "csf"]
    assert (config.file, config.folder) == (tmp_path / "risk.toml", tmp_path)
    assert config.table == config.resolve("people.csv") == tmp_path / "people.csv"
    assert config.resolve("/a/b") == Path("/a/b")
    assert config.resolve("~/b") == Path("~/b").expanduser()
    assert config.document["input"]["path"] == "people.csv"
    assert config.document["run"]["show_values"] is False


def test_a_relative_file_is_made_absolute(load, tmp_path, monkeypatch):
    load(INPUT)
    monkeypatch.chdir(tmp_path)
    config = load_config("risk.toml")
    assert config.file == tmp_path / "risk.toml"


def test_signs_of_patterns_in_the_name_of_the_folder_are_literal(tmp_path):
    folder = tmp_path / "a[1]"
    folder.mkdir()
    for name in ("b.csv", "c[2].csv"):
        (folder / name).write_text("x,y\n1,2\n")
    (folder / "risk.toml").write_text('[input]\npath = "*.csv"\n')
    from gpupif.io.paths import find_input

    assert len(find_input(load_config(folder / "risk.toml").table).files) == 2
    (folder / "risk.toml").write_text('[input]\npath = "c[2].csv"\n')
    assert load_config(folder / "risk.toml").table == folder / "c[2].csv"


def test_values_keep_their_types(load):
    text = INPUT + (
        "[score]\nattackers = {all = ['a', 'b'], some = 2, few = {any = 1, among = ['a'], subsets = 3, seed = 0}}\n"
        "distances = {a = 'ordered', b = ['x', 'y']}\n[[gates]]\nkind = 'rows'\nmax = 3\nmin = 2.5\n"
    )
    settings = load("\ufeff" + text).settings
    few = AnyKnownSettings(any=1, among=["a"], subsets=3, seed=0)
    assert settings.score.attackers == {"all": ["a", "b"], "some": 2, "few": few}
    assert settings.score.distances == {"a": "ordered", "b": ["x", "y"]}
    assert settings.gates[0].limits == {"max": 3.0, "min": 2.5}


def test_the_digest_ignores_how_a_configuration_is_written(load):
    plain = load(GATE).digest
    assert len(plain) == 64
    other = (
        "# A comment.\n[run]\ndevice = 'auto'\nstate = \"gpupif-nightly\"\n[input]\ndriver = 'auto'\n"
        "path='people.csv'\n"
        "[[gates]]\nmax = 3.0\npercentile = 95.0\nkind = 'pif'\nname = 'PIF 95'\n"
        "[[gates]]\nkind = 'k'\nmin = 5\nname = 'own'\n"
    )
    assert load(other).digest == plain
    assert load(GATE, "gates.0.max=3.5").digest != plain
    assert load(GATE.replace("people", "persons")).digest != plain


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["input: expected a table [input], got none. Add it, with path = 'data/*.parquet', say."]),
        (
            "[input]",
            ["input.path: expected the path of a table, or a connection and a query in its place; got neither."],
        ),
        ("[inputs]\npath = 'a'", ["input: expected a table", "inputs: expected a key that the configuration has, got"]),
        ("[[input]]\npath = 'a'", ["input: expected a table, got a list. Write [input], in one bracket and once."]),
        ("input = 'a'", ["input: expected a table, got text 'a'."]),
        ("[input]\npath = ' '", ["input.path: expected text in its quotes, got none."]),
        ("[input]\npath = 'a\\u0000b'".replace("'", chr(34)), ["input.path: expected text without NUL"]),
        (
            "[input]\npath = 'a'\nconnection = 'b'\nquery = 'c'",
            ["input.connection: expected it or a path, which is there too. Remove one of them."],
        ),
        ("[input]\nconnection = 'b'", ["input.query: expected what of the database is the table, got nothing."]),
        ("[input]\nconnection = 'b'\nquery = ' '", ["input.query: expected what of the database"]),
        (
            "[input]\npath = 'a'\nquery = 'SELECT'\nwatermark = 'w'\ndriver = 'adbc'",
            ["input.query: expected it with a conn", "input.watermark: expected it with", "input.driver: expected it"],
        ),
        (
            "[input]\nconnection = 'b'\nquery = 'c'\nseparator = ','",
            ["input.separator: expected it with a path only, and here is a connection. Remove it."],
        ),
        (
            INPUT + "[score]\nknown = 2\nattackers = {a = 1}",
            ["score.attackers: expected them or known, which is there too. Remove one of them."],
        ),
        (
            INPUT + "[score]\nknown = true\ncolumns = 'a'\nmeasures = []",
            [
                "score.columns: expected a list, got text 'a'. Write [\"a\"].",
                "score.known: expected a list of columns, how many of any columns, or a table such as {any = 2, "
                "among = ['sex', 'age']}; got true.",
            ],
        ),
        (INPUT + "[score]\nknown = -1", ["score.known: expected 0 or more, got -1."]),
        (INPUT + "[score]\nknown = ['a', 1]", ["score.known[1]: expected text, got 1. Put it in quotes."]),
        (
            INPUT + "[score.attackers]\n'a b' = {amon = ['c'], seed = '1'}",
            [
                'score.attackers."a b".any: expected it, got nothing. Add it.',
                "score.attackers.\"a b\".seed: expected a whole number, got text '1'. Write it without quotes.",
                "score.attackers.\"a b\".amon: expected a key that this table has, got 'amon'. Did you mean 'among'?",
            ],
        ),
        (
            INPUT + "[score.attackers]\nall = {any = 1, seed = 1}",
            ["score.attackers.all.seed: expected it with subsets only"],
        ),
        (
            INPUT + "[score]\ncolumns = []\nattackers = {}\nmeasures = ['cgi']\npopulation_lacks = 'count'",
            [
                "score.columns: expected at least one, got none.",
                "score.attackers: expected at least one, got none.",
                "score.population_lacks: expected 'count' with a population only",
                "score.measures: expected some of cig, ",
            ],
        ),
        (
            INPUT + "[score]\ndistances = {a = 1, b = [2]}",
            [
                "score.distances.a: expected 'ordered', 'nominal', a list of values in order, or the path of a "
                "hierarchy; got 1.",
                "score.distances.b[0]: expected text, got 2. Put it in quotes.",
            ],
        ),
        (INPUT + "[score]\nweights = 1999-12-31", ["score.weights: expected text, got the date or time 1999-12-31."]),
        (INPUT + "[risk]\nsensitive = ['a']", ["risk.sensitive: expected quasi_identifiers beside it, got none."]),
        (
            INPUT + "[risk]\nquasi_identifiers = ['a']\nsensitive = ['b', 'a']",
            ["risk.sensitive: expected other columns than quasi_identifiers has, got 'a' in both."],
        ),
        (
            INPUT + "[risk]\nk = 2.5\nl = 0\nthreshold = 5",
            [
                "risk.k: expected a whole number, got 2.5.",
                "risk.l: expected 1 or more, got 0.",
                "risk.threshold: expected 1 or less, got 5.",
            ],
        ),
        (
            INPUT + "[risk]\nthreshold = 0\nk = true",
            ["risk.k: expected a whole", "risk.threshold: expected a number above 0"],
        ),
        (
            INPUT + "[run]\ndevice = 'gpu'\nmemory_limit = '8 gigs'\nstate = ''",
            [
                "run.device: expected one of auto, cpu, cuda, or cuda:0 and so on; got 'gpu'.",
                "run.memory_limit: expected a size such as '2GiB' or '500MB', or a number of bytes, got '8 gigs'.",
                "run.state: expected text in its quotes, got none.",
            ],
        ),
        (
            INPUT + "[run]\nmax = 1\nshow_values = 'yes'\nthreads = 0\ndevise = 'cpu'",
            [
                "run.threads: expected 1 or more, got 0.",
                "run.show_values: expected true or false, got text 'yes'. Write it without quotes.",
                "run.max: expected a key that this table has, got 'max'. Did you mean that of [gates]? Keys that it "
                "has: state, ",
                "run.devise: expected a key that this table has, got 'devise'. Did you mean 'device'?",
            ],
        ),
        (INPUT + "[keep]\nscores = 'cells'", ["keep.where: expected a condition, for scores = 'cells'; got none."]),
        (
            INPUT + "[keep]\nwhere = 'cig >= 3'\nruns = 0",
            ["keep.runs: expected 1 or more, got 0."],
        ),
        (
            INPUT + "[keep]\nwhere = 'cig >= 3'\nscores = 'all'",
            ["keep.where: expected it with scores = 'cells' only, got scores = 'all'. Remove one of them."],
        ),
        (INPUT + "[keep]\nwhere = 'cig = 3'\nscores = 'cells'", ["keep.where: expected a name, a number, or one of >"]),
        (
            INPUT + "[keep]\nscores = 'cell'",
            ["keep.scores: expected one of 'none', 'cells', 'all'; got text 'cell'. Did you mean 'cells'?"],
        ),
        (INPUT + "[gates]\nkind = 'k'", ["gates: expected a list, got a table. Write [[gates]], in two brackets."]),
        (INPUT + "[[gates]]\nmax = 3", ["gates[0].kind: expected it, got nothing. Add it."]),
        (
            INPUT + "[[gates]]\nkind = 'k'",
            ["gates[0].max (gate 'k'): expected a limit, max, min, max_rise or max_fall; got none. Add one."],
        ),
        (
            GATE + "[[gates]]\nname = 'third'\nkind = 'rows'\nmax = '3'\nmin = nan\npercentile = 101",
            [
                "gates[2].percentile (gate 'third'): expected 100 or less, got 101.",
                "gates[2].max (gate 'third'): expected a number, got text '3'. Write it without quotes.",
                "gates[2].min (gate 'third'): expected a finite number, got nan.",
            ],
        ),
        (GATE + "[[gates]]\nkind = 'k'\nmax = inf", ["gates[2].max (gate 'k'): expected a finite number, got inf."]),
        (GATE + "[[gates]]\nkind = 'k'\nmax = 1e400", ["gates[2].max (gate 'k'): expected a finite number, got inf."]),
        (GATE + "[[gates]]\nkind = 'k'\nmax_rise = -1", ["gates[2].max_rise (gate 'k'): expected 0 or more, got -1."]),
        (
            GATE + "[[gates]]\nkind = 'k'\nmax = 3\nmin = 4",
            ["gates[2].min (gate 'k'): expected at most what max is, 3; got 4. Nothing would pass."],
        ),
        (
            GATE + "[[gates]]\nkind = 'k'\nmax = 3\nname = 'own'",
            ["gates: expected gates of different names, got 2 called 'own'."],
        ),
        (
            GATE + "[[gates]]\nkind = 'k'\nmax = 3\nname = '\\t'".replace("'\\t'", '"\\t"'),
            ["gates[2].name (gate '\\t'): expected text that"],
        ),
        (
            GATE + "[[gates]]\nkind = 'k'\nmaxrise = 3",
            ["gates[2].maxrise (gate 'k'): expected a key that this table has, got 'maxrise'. Did you mean 'max_"],
        ),
        (
            INPUT + "[[tell.webhooks]]\nformat = 'jsn'\ntimeout = 0\nretries = 1.5",
            [
                'tell.webhooks[0].url: expected it, got nothing. Add it, such as url = "${RISK_WEBHOOK}".',
                "tell.webhooks[0].format: expected one of 'json', 'openlineage'; got text 'jsn'. Did you mean 'json'?",
                "tell.webhooks[0].timeout: expected a number above 0, got 0.",
                "tell.webhooks[0].retries: expected a whole number, got 1.5.",
            ],
        ),
        (
            INPUT + "[[tell.webhooks]]\nurl = 'example.org'\nheaders = {a = \"b\\nc\"}",
            ["tell.webhooks[0].url: expected an address that begins", "tell.webhooks[0].headers: expected headers of"],
        ),
        (
            INPUT + "[tell]\njson_file = 'a'\njunit = ' '\nmarkdown = ''",
            ["tell.markdown: expected text in its quotes", "tell.junit: expected text in its quotes"],
        ),
        (
            INPUT + "[tell]\nprometheus = 'metrics/risk.txt'",
            ["tell.prometheus: expected a file that ends in .prom, got 'metrics/risk.txt'. No other one is collected."],
        ),
        ("a = = 3", ["expected TOML, got what is none: Invalid value (at line 1, column 5). Texts stand in quotes,"]),
        ("a = 1\na = 2", ["expected TOML, got what is none: Cannot overwrite a value (at "]),
        ("a = " + "[" * 10_000, ["expected TOML, got what is none: "]),
        (b"\xff", ["expected TOML in UTF-8, got other bytes. Save it as UTF-8."]),
    ],
)
def test_all_mistakes_are_said_at_once_a_line_each(refused, text, lines):
    """A line has the key, the expected value, the given value and the remedy."""
    said = refused(text)
    assert len(said) == len(lines), said
    for found, begin in zip(said, lines, strict=True):
        assert found.startswith(begin)
        assert found.endswith((".", "?"))


def test_missing_and_bad_configuration_files_are_refused(tmp_path):
    with pytest.raises(gpupif.InputError, match=r"none.toml: could not be read: No such file .* init TABLE writes one"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(gpupif.InputError, match="could not be read: Is a directory"):
        load_config(tmp_path)
    with pytest.raises(gpupif.InputError, match="config: expected the path of a configuration of nightly runs, got 3"):
        load_config(3)


@pytest.mark.parametrize(
    ("override", "found"),
    [
        ("run.device=cpu", lambda s: s.run.device == "cpu"),
        ("run.device='cpu'", lambda s: s.run.device == "cpu"),
        (" run . device =cpu", lambda s: s.run.device == "cpu"),
        ('"run"."device"=cpu', lambda s: s.run.device == "cpu"),
        ("run.memory_limit=8GiB", lambda s: s.run.memory_limit == "8GiB"),
        ("run.threads=3", lambda s: s.run.threads == 3),
        ("run.show_values=true", lambda s: s.run.show_values is True),
        ("gates.0.max=4", lambda s: s.gates[0].max == 4.0),
        ("gates.1.min=4", lambda s: s.gates[1].min == 4.0),
        ("gates.own.min=4", lambda s: s.gates[1].min == 4.0),
        ("gates.PIF 95.max=4", lambda s: s.gates[0].max == 4.0),
        ("gates.'PIF 95'.max=4", lambda s: s.gates[0].max == 4.0),
        ('score.columns=["a", "b=c"]', lambda s: s.score.columns == ["a", "b=c"]),
        ("score.known={any = 2}", lambda s: s.score.known == AnyKnownSettings(any=2)),
        ('score.attackers.one=["a"]', lambda s: s.score.attackers == {"one": ["a"]}),
        ("score.distances.'a.b'=ordered", lambda s: s.score.distances == {"a.b": "ordered"}),
        ("input.path=a=b.csv", lambda s: s.input.path == "a=b.csv"),
        ("input.path=x\nrun.k=3", lambda s: s.input.path == "x\nrun.k=3"),
        ("input.path='x'\ny='z'", lambda s: s.input.path == "'x'\ny='z'"),
    ],
)
def test_keys_can_be_set_from_outside(load, override, found):
    assert found(load(GATE, override).settings)


def test_the_last_of_several_overrides_holds(load):
    config = load(INPUT, "run.threads=3", 'gates=[{kind="k", min=2}]', "gates.k.min=3", "run.threads=4")
    assert config.settings.run.threads == 4
    assert config.settings.gates == [GateSettings(kind="k", name="k", min=3)]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "run.devise=cpu",
            "risk.toml: --set run.devise: expected a key that this table has, got 'devise'. Did you mean",
        ),
        (
            "runn.device=cpu",
            "risk.toml: --set runn: expected a key that the configuration has, got 'runn'. Did you mean",
        ),
        ("run.threads=many", "risk.toml: --set run.threads: expected a whole number, got text 'many'"),
        ("run.device.a=1", "risk.toml: --set run.device: expected text, got a table."),
        ("input.path.a=1", "--set input.path.a: expected a table at input.path, got text 'people.csv'. Leave 'a' out."),
        (
            "gates.2.max=1",
            "--set gates.2.max: expected an entry of gates, which has 2, numbered from 0 or by name; got",
        ),
        ("gates.owm.max=1", "got 'owm'. Did you mean 'own'? Names of gates: 'PIF 95', 'own'."),
        ("tell.webhooks.0.url=x", "expected an entry of tell.webhooks, which has 0, numbered from 0; got '0'."),
        ("run.device", "--set: expected KEY=VALUE, such as run.device=cpu or gates.0.max=3; got 'run.device'."),
        ("=3", "--set: expected KEY=VALUE"),
        ("a..b=3", "--set: expected KEY=VALUE"),
        ("input.path=\udcff", "--set input.path: expected text in UTF-8, got other bytes."),
        (3, "--set: expected text, KEY=VALUE"),
    ],
)
def test_keys_that_cannot_be_set_are_refused(load, override, words):
    with pytest.raises(gpupif.InputError) as raised:
        load(GATE, override)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_mistakes_of_the_file_are_not_blamed_on_overrides(refused):
    said = refused(GATE + "[run]\ndevise = 'a'", "run.devices=cpu", "gates.0.max=4")
    assert [line.partition(":")[0] for line in said] == ["run.devise", "--set run.devices"]


def test_gates_without_a_name_get_one():
    gates = [
        {"kind": "pif", "percentile": 95.0},
        {"kind": "pif", "percentile": 99.5},
        {"kind": "pif", "percentile": 95, "max": 2},
        {"kind": "mean", "measure": "cig", "column": "a", "attacker": "all"},
        {"kind": "k", "name": "PIF 95 3"},
        {"kind": "pif", "percentile": 95},
        3,
        {"kind": None, "name": 4},
    ]
    expected = ["PIF 95", "PIF 99.5", "PIF 95 2", "mean cig of a against all", "PIF 95 3", "PIF 95 4"]
    assert gate_names(gates)[:6] == expected
    assert len(set(gate_names(gates))) == len(gates)


@pytest.mark.parametrize(
    "package", [re.match(r"[\w-]+", text)[0] for text in requires("gpupif") if re.search("extra == .nightly.", text)]
)
def test_each_missing_package_of_the_extra_is_named(package, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("gpupif.nightly")]:
        monkeypatch.delitem(sys.modules, name)
    module = package.replace("-", "_")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == module else "there")
    with pytest.raises(gpupif.InputError, match=rf"need {package}, not .*: pip install 'gpupif\[nightly\]'\."):
        importlib.import_module("gpupif.nightly")


def test_the_signature_shows_no_value_of_the_environment(tmp_path, monkeypatch):
    assert inspect.signature(load_config).parameters["environ"].default is None
    monkeypatch.setenv("TABLE_OF_TEST", "people.csv")
    file = tmp_path / "risk.toml"
    file.write_text('input.path = "${TABLE_OF_TEST}"')
    assert load_config(file).settings.input.path == "people.csv"


@pytest.mark.parametrize(("overrides", "came"), [("run.device=cpu", "one text"), (None, "NoneType"), (3, "int")])
def test_overrides_must_be_a_list(tmp_path, overrides, came):
    with pytest.raises(gpupif.InputError, match=f"^overrides: expected a list of texts, KEY=VALUE; got {came}"):
        load_config(tmp_path / "risk.toml", overrides)


def test_reading_past_runs_needs_no_secrets_of_other_sections(tmp_path, monkeypatch):
    file = tmp_path / "risk.toml"
    file.write_text(
        'run = { state = "${STATE_OF_TEST}", show_values = true }\n[input]\nconnection = "${NO_SUCH_VARIABLE}"\n'
        '[tell]\nwebhooks = [{ url = "${NO_SUCH_VARIABLE}", headers = { A = "${NO_SUCH_VARIABLE}" } }]'
    )
    monkeypatch.setenv("STATE_OF_TEST", "kept")
    assert find_runs(file, ["run.temp=/var/tmp"]) == RunsPlace(tmp_path / "kept", Path("/var/tmp"), True)
    monkeypatch.delenv("STATE_OF_TEST")
    with pytest.raises(gpupif.InputError, match=r"run\.state: expected the secret of the variable STATE_OF_TEST"):
        find_runs(file)
    with pytest.raises(gpupif.InputError, match=r"--set rum: expected a key .* Did you mean 'run'"):
        find_runs(file, ["run.state=kept", "rum.temp=/var/tmp"])
