"""Secrets of the environment: in settings, and nowhere else."""

from __future__ import annotations

import json
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.configuration.secrets import Redaction
from gpupif.nightly.table.kept_table import table_identity
from gpupif.utils.validation import brief

DATABASE = '[input]\nconnection = "${DB}"\nquery = "SELECT 1"\n'
# Every text of the configuration, with what else it has to have.
PLACES = (
    '[input]\npath = "{}"\n',
    '[input]\npath = "a"\nrow_key = ["b", "{}"]\n',
    '[input]\npath = "a"\nseparator = "{}"\n',
    '[input]\nconnection = "postgresql://risk:{}@host/people"\nquery = "SELECT 1"\n',
    '[input]\npath = "a"\n[score]\nweights = "{}"\nattackers = {{one = ["{}"], two = {{any = 1, among = ["{}"]}}}}\n',
    '[input]\npath = "a"\n[score]\ndistances = {{a = "{}", b = ["{}"]}}\n',
    '[input]\npath = "a"\n[score]\nmeasures = ["{}"]\n',
    '[input]\npath = "a"\n[run]\ndevice = "{}"\nmemory_limit = "{}"\nstate = "{}"\nthreads = "{}"\n',
    '[input]\npath = "a"\n[keep]\nscores = "cells"\nwhere = "cig > {}"\n',
    '[input]\npath = "a"\non_schema_change = "{}"\n',
    '[input]\npath = "a"\n[[gates]]\nkind = "mean"\ncolumn = "{}"\nattacker = "{}"\nmax = 3\n',
    '[input]\npath = "a"\n[[gates]]\nkind = "{}"\nmax = "{}"\n',
    '[input]\npath = "a"\n[[tell.webhooks]]\nurl = "https://u:{}@host/{}?key={}"\nheaders = {{A = "Bearer {}"}}\n',
    '[input]\npath = "a"\n[[tell.webhooks]]\nurl = "{}"\nretries = "{}"\n',
)
# Letters that stand in nothing that gpupif says.
SECRETS = st.text(st.sampled_from("ÄÖÜßŁØ%@:/?#&\"'\\ \n\té"), min_size=4, max_size=90).filter(
    lambda text: sum(sign in "ÄÖÜßŁØ" for sign in text) >= 4
)


@pytest.fixture
def load(tmp_path):
    """Loads a configuration from its text, with an environment."""

    def loaded(text, *overrides, **environ):
        (tmp_path / "risk.toml").write_text(text)
        return load_config(tmp_path / "risk.toml", overrides, environ)

    return loaded


@given(place=st.sampled_from(PLACES), secret=SECRETS)
@settings(max_examples=40, deadline=None)
def test_no_secret_is_shown_or_kept(tmp_path_factory, place, secret):
    """A secret may be in any setting, also in settings that do not use it."""
    file = tmp_path_factory.getbasetemp() / "risk.toml"
    file.write_text(place.format(*["${SECRET}"] * 4))
    shown = {secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], " ".join(secret.split())}
    config = error = None
    try:
        config = load_config(file, environ={"SECRET": secret})
    except gpupif.InputError as refused:
        error = refused
    if config is None:
        said = str(error)
        assert (error.__cause__, error.__context__) == (None, None)
    else:
        said = repr(config) + json.dumps(config.document, ensure_ascii=False)
        assert load_config(file, environ={"SECRET": secret + "ß"}).digest == config.digest
    assert not [one for one in shown if one in said]
    assert not set(said) & set("ÄÖÜßŁØ")


@given(secret=SECRETS, before=st.text(max_size=5), after=st.text(max_size=5))
@settings(max_examples=40, deadline=None)
def test_a_secret_is_hidden_in_any_quotation(secret, before, after):
    redact = Redaction([secret], False)
    for form in (
        secret,
        repr(secret),
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
        urllib.parse.quote(secret),
        urllib.parse.quote(secret, safe=""),
        urllib.parse.quote_plus(secret),
        " ".join(secret.split()),
        brief(secret),
    ):
        hidden = redact(f"{before}{form}{after}")
        assert not set(hidden) & set("ÄÖÜßŁØ") - set(before + after)
        assert "%C3" not in hidden
        assert "\\u00" not in hidden.removeprefix(before).removesuffix(after)


def test_parts_of_addresses_are_hidden_too():
    redact = Redaction(["postgresql://risky:p%40ss/w@host:5432/people?sslpassword=abc"], False)
    said = 'user "risky": password "p@ss/w", p%40ss/w or abc is wrong for postgresql://host:5432/people'
    assert redact(said) == 'user "***": password "***", *** or *** is wrong for postgresql://host:5432/people'
    hook = Redaction(["https://hooks.example.org/services/T0/B0/x1"], False)
    assert (
        hook("host='hooks.example.org', url: /services/T0/B0/x1 (timed out)")
        == "host='hooks.example.org', url: *** (timed out)"
    )
    assert hook("riskier services") == "riskier services"


def test_the_longest_secret_is_hidden_first_and_short_ones_as_words():
    assert Redaction(["secret", "secret-of-two"], False)("secret-of-two, secret") == "***, ***"
    assert Redaction(["a"], False)("a table 'a' at a_b") == "*** table '***' at a_b"
    assert Redaction([], False)("a") == "a"


def test_references_are_replaced_by_variables_of_the_environment(load):
    config = load(
        '[input]\npath = "${FOLDER}/${_NAME2}.csv"\n[[gates]]\nkind = "max"\ncolumn = "$${a}"\nmeasure = "$a {b}"\n'
        "max = 1\n",
        "run.state=${FOLDER}",
        FOLDER="/data",
        _NAME2="$${x} ${FOLDER}",
    )
    # What the environment says is not looked into again.
    assert config.settings.input.path == "/data/$${x} ${FOLDER}.csv"
    assert config.settings.run.state == "/data"
    assert (config.settings.gates[0].column, config.settings.gates[0].measure) == ("${a}", "$a {b}")
    assert config.document["input"]["path"] == "${FOLDER}/${_NAME2}.csv"
    assert config.document["run"]["state"] == "${FOLDER}"
    assert config.document["gates"][0]["column"] == "$${a}"


@pytest.mark.parametrize(
    ("text", "environ", "words"),
    [
        (
            DATABASE,
            {},
            "input.connection: expected the secret of the variable DB of the environment, and it is not set.",
        ),
        (
            DATABASE,
            {"DB": ""},
            "input.connection: expected the secret of the variable DB of the environment, and it is em",
        ),
        (
            '[input]\npath = "${A-B}"',
            {},
            "input.path: expected the name of a variable of the environment, ${NAME}; got '${A",
        ),
        ('[input]\npath = "a${B"', {}, "; got '${B'. Write $${ for the text ${ itself."),
    ],
)
def test_missing_secrets_are_an_error(load, text, environ, words):
    with pytest.raises(gpupif.InputError) as raised:
        load(text, **environ)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[[gates]]\nkind = "k"\nname = "${A}"\nmax = 1', "gates[0].name (gate '${A}')"),
        ('[[gates]]\nkind = "max"\ncolumn = "${A}"\nmax = 1', "gates[0].column (gate 'max')"),
        ('[keep]\nscores = "cells"\nwhere = "cig > ${A}"', "keep.where"),
        ('[risk]\nsensitive = ["a", "${A}"]', "risk.sensitive[1]"),
        ('[score.attackers]\nall = ["${A}"]', "score.attackers.all[0]"),
        ('[score.attackers]\nsome = {any = 1, among = ["a", "b-${A}"]}', "score.attackers.some.among[1]"),
    ],
)
def test_a_setting_that_reports_show_may_not_be_a_secret(load, text, key):
    with pytest.raises(gpupif.InputError) as raised:
        load(f'[input]\npath = "a"\n{text}', A="b")
    assert f"{key}: expected text without ${{A}}: reports have it, and no secrets. Write it out, or use --set." in str(
        raised.value
    )


def test_the_name_of_a_table_shows_no_secret(load, tmp_path):
    assert table_identity(load('[input]\npath = "${F}/a.csv"', F="/data")) == "${F}/a.csv"
    assert table_identity(load('[input]\npath = "a.csv"')) == str(tmp_path / "a.csv")
    assert table_identity(load(DATABASE, DB="postgresql://u:p@h/d")) == "${DB}: SELECT 1"


def test_all_missing_variables_are_named_beside_other_mistakes(load):
    with pytest.raises(gpupif.InputError) as raised:
        load(DATABASE + 'driver = "${W}"\n[run]\nthreads = "x"\n[[tell.webhooks]]\nurl = "${URL}"')
    said = str(raised.value).split("\n")[1:]
    assert [line.partition(":")[0] for line in said] == [
        "  input.connection",
        "  input.driver",
        "  tell.webhooks[0].url",
        "  run.threads",
    ]


@pytest.mark.parametrize(
    ("connection", "kept", "secret"),
    [
        ("postgresql://risk:hunter2@host/people", "postgresql://risk:***@host/people", "hunter2"),
        ("postgresql://risk:hun@ter/2@host/people", "postgresql://risk:***@host/people", "hun@ter/2"),
        (
            "postgresql://host/people?user=risk&password=hunter2&a=b",
            "postgresql://host/people?user=risk&password=***&a=b",
            "hunter2",
        ),
        ("host=h user=risk password=hunter2 dbname=d", "host=h user=risk password=*** dbname=d", "hunter2"),
        ("postgresql://risk@host/people", "postgresql://risk@host/people", None),
        ("duckdb:///people.db", "duckdb:///people.db", None),
        ("postgresql://risk:${DB}@host/people", "postgresql://risk:${DB}@host/people", "from-outside"),
        ("postgresql://risk:a${DB}@host/people", "postgresql://risk:***@host/people", "from-outside"),
    ],
)
def test_passwords_written_in_the_file_are_not_kept(load, connection, kept, secret):
    config = load(DATABASE.replace("${DB}", connection), DB="from-outside")
    assert config.document["input"]["connection"] == kept
    assert config.settings.input.connection == connection.replace("${DB}", "from-outside")
    if secret is not None:
        assert config.redact(f"no entry for '{secret}'") == "no entry for '***'"


def test_webhooks_written_in_the_file_are_not_kept(load):
    text = (
        '[input]\npath = "a"\n[[tell.webhooks]]\nurl = "https://me:hunter2@host:1/services/T0"\n[tell.webhooks.headers]\n'
        'Authorization = "Bearer abcdef"\nX-Key = "Bearer ${KEY}"\nContent-Type = "application/json"\n'
    )
    config = load(text, KEY="from-outside")
    hook = config.document["tell"]["webhooks"][0]
    assert hook["url"] == "https://me:***@host:1/***"
    assert hook["headers"] == {"Authorization": "***", "X-Key": "Bearer ${KEY}", "Content-Type": "application/json"}
    assert config.settings.tell.webhooks[0].headers["Authorization"] == "Bearer abcdef"
    said = "POST /services/T0 with Bearer abcdef, from-outside, hunter2, application/json"
    assert config.redact(said) == "POST /*** with ***, ***, ***, application/json"
