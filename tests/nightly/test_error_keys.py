"""Errors of nightly runs begin with a key of the configuration, and advise in its words."""

from __future__ import annotations

import pytest

from gpupif.errors import DeviceError, InputError, TableReadError, marked
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.configuration.error_keys import error_text
from tests.helpers.nights import Nights

NAMED_TWICE = "column 'age' is named twice. Name it once."


@pytest.fixture
def said(tmp_path):
    """Returns the text of an error of a run with a configuration of `more` tables."""

    def text(error, more=""):
        (tmp_path / "risk.toml").write_text(f'input.path = "people.csv"\n{more}')
        return error_text(error, load_config(tmp_path / "risk.toml"))

    return text


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ('score.columns=["age", "age"]', f"score.columns: {NAMED_TWICE}"),
        ('score.known=["age", "age"]', f"score.known: {NAMED_TWICE}"),
        ('score.attackers={a=["age", "age"]}', f"score.attackers: 'a': {NAMED_TWICE}"),
        ('score.known={any=1, among=["age", "age"]}', f"score.known.among: {NAMED_TWICE}"),
        ('risk.quasi_identifiers=["age", "age"]', f"risk.quasi_identifiers: {NAMED_TWICE}"),
        ('risk.sensitive=["illness", "illness"]', f"risk.sensitive: {NAMED_TWICE.replace('age', 'illness')}"),
        ('score.distances={age=["30"]}', "score.distances: column 'age': expected all its values in order"),
        ("score.weights=illness", "score.weights: column 'illness': expected numbers"),
        ("score.known=99", "score.known: expected at most 1, the number of other columns scored, got 99."),
        ("input.separator=;", "input.separator: "),
        ("run.memory_limit=1KiB", "run.memory_limit: expected at least"),
    ],
)
def test_an_error_of_a_run_begins_with_its_key(tmp_path, override, error):
    outcome = Nights(tmp_path).run(override, 'score.measures=["cig", "emd"]')
    assert outcome.error.startswith(error)
    assert outcome.exit_code == 2


@pytest.mark.parametrize("key", ["population", "priors", "accuracies"])
def test_a_missing_file_beside_the_table_is_named_with_its_key(tmp_path, key):
    outcome = Nights(tmp_path).run(f"score.{key}=none.csv")
    assert outcome.error == f"score.{key}: {tmp_path}/none.csv: no such file or folder. Check the path."


def test_files_below_a_folder_and_of_a_pattern_are_those_of_its_key(said, tmp_path):
    for path in ("city", "city/*.csv"):
        error = TableReadError(f"{tmp_path}/city/a.csv: damaged.")
        assert said(error, f'score.population = "{path}"') == f"score.population: {tmp_path}/city/a.csv: damaged."
    assert said(TableReadError("people.csv: damaged."), 'score.priors = "b.csv"') == "people.csv: damaged."


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            DeviceError("device 'cuda' cannot be used. Use gpupif.config(device='cpu') or device='auto'."),
            "run.device: 'cuda' cannot be used. Use run.device = 'cpu' or run.device = 'auto'.",
        ),
        (
            TableReadError("a.csv: one column. Use sep=',' instead."),
            "a.csv: one column. Use input.separator = ',' instead.",
        ),
        (InputError("known: too many. Name more, with among=."), "score.known: too many. Name more, with among."),
        (InputError("Leave it out with columns=."), "Leave it out with score.columns."),
        (
            InputError("population: lacks 2. Use gpupif.Population(table, lacks='count')."),
            "score.population: lacks 2. Use score.population_lacks = 'count'.",
        ),
        (
            InputError(f"known: no {marked('value')} in risk.k=3, /a/missing=1."),
            "score.known: no *** in risk.k=3, /a/missing=1.",
        ),
        (FileNotFoundError(2, "No such file", "known"), "known: No such file."),
    ],
)
def test_advice_names_keys_of_the_configuration(said, error, text):
    assert said(error) == text
