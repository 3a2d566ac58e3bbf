"""Configurations as TOML: what is written is what is read, and every key is there."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.configuration.new_config import as_written, commented_toml
from gpupif.nightly.configuration.settings import (
    AnyKnownSettings,
    CountTableSettings,
    GameSettings,
    GateSettings,
    InputSettings,
    KeepSettings,
    ReleaseSettings,
    RiskSettings,
    RunSettings,
    ScoreSettings,
    Section,
    Settings,
    TellSettings,
    WebhookSettings,
)
from gpupif.nightly.gates.gate_kinds import gate_names

# Also what begins a variable, and quotes, backslashes and line breaks.
TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["${A}", "$${", '"', "'''", "\\", "a\nb", "#"]
)
WORDS = TEXT.filter(lambda text: text.strip() and "\0" not in text)
NAMES = st.lists(TEXT, max_size=4)
SOME = NAMES.filter(bool)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def optional(strategy):
    return st.none() | strategy


FILES = st.builds(InputSettings, path=WORDS, separator=optional(TEXT), row_key=NAMES)
DATABASES = st.builds(
    InputSettings,
    connection=WORDS,
    query=WORDS,
    driver=st.sampled_from(["auto", "adbc"]),
    watermark=optional(TEXT),
    on_schema_change=st.sampled_from(["fail", "accept"]),
)
FEW = st.builds(
    AnyKnownSettings,
    any=st.integers(0, 9),
    among=optional(NAMES),
    subsets=st.integers(1, 9),
    seed=optional(st.integers()),
)
KNOWN = NAMES | st.integers(0, 9) | FEW
SCORE = st.builds(
    ScoreSettings,
    columns=optional(SOME),
    measures=st.sampled_from([["cig"], ["csf", "renyi_2"]]),
    known=optional(KNOWN),
    weights=optional(TEXT),
    priors=optional(WORDS),
    distances=st.dictionaries(TEXT, TEXT | NAMES, max_size=3),
    missing=st.sampled_from(["category", "wildcard"]),
) | st.builds(ScoreSettings, attackers=st.dictionaries(TEXT, KNOWN, min_size=1, max_size=3))
RISK = st.builds(RiskSettings, k=st.integers(1, 2**60), threshold=optional(st.floats(1e-9, 1))) | st.builds(
    RiskSettings,
    quasi_identifiers=st.just(["a", "${b}"]),
    sensitive=st.just(["c"]),
    l=st.integers(1, 9),
    household=optional(TEXT),
    game=optional(st.builds(GameSettings, adversary_cost=st.floats(0, 1e9))),
)
RUN = st.builds(RunSettings, state=WORDS, device=st.sampled_from(["cpu", "cuda:1"]), show_values=st.booleans())
KEEP = st.builds(KeepSettings, runs=optional(st.integers(1, 9))) | st.just(
    KeepSettings(scores="cells", where="cig > 1")
)
PRINTED = WORDS.filter(str.isprintable)
GATES = st.lists(
    st.builds(
        GateSettings,
        kind=TEXT,
        name=optional(PRINTED),
        percentile=optional(st.floats(0, 100)),
        column=optional(TEXT),
        above=optional(NUMBERS),
        max=NUMBERS,
        max_rise=optional(st.floats(0, 1e300)),
    ),
    max_size=4,
    unique_by=lambda gate: object() if gate.name is None else gate.name,
)
HOOKS = st.lists(
    st.builds(
        WebhookSettings,
        url=TEXT.map("https://".__add__),
        timeout=st.floats(1e-9, 1e9),
        headers=st.dictionaries(st.sampled_from("ab"), PRINTED),
    ),
    max_size=2,
)
SETTINGS = st.builds(
    Settings,
    input=FILES | DATABASES,
    score=SCORE,
    risk=RISK,
    run=RUN,
    keep=KEEP,
    gates=GATES,
    tell=st.builds(TellSettings, json_file=optional(WORDS), webhooks=HOOKS),
)


def document_of(settings):
    return as_written(settings.model_dump(mode="json"))


@pytest.mark.slow
@given(SETTINGS, st.text(max_size=200))
@hypothesis(max_examples=40, deadline=None)
def test_a_written_configuration_is_read_back(tmp_path_factory, settings, remark):
    file = tmp_path_factory.getbasetemp() / "written.toml"
    keys = ("input.path", "score.known", "gates[0]", "tell.log")
    text = commented_toml(document_of(settings), remark, dict.fromkeys(keys, remark), [(remark, {"kind": "k"})])
    file.write_bytes(text.encode())
    read = load_config(file, environ={}).settings
    names = gate_names(document_of(settings)["gates"])
    named = [
        gate if gate.name is not None else gate.model_copy(update={"name": name})
        for gate, name in zip(settings.gates, names, strict=True)
    ]
    assert read == settings.model_copy(update={"gates": named})


# All that have keys of their own, but for those that stand in one line.
SECTIONS = (
    ReleaseSettings,
    InputSettings,
    ScoreSettings,
    RiskSettings,
    RunSettings,
    KeepSettings,
    GateSettings,
    TellSettings,
    WebhookSettings,
)


def test_every_key_is_written_with_its_description():
    least = Settings(input=InputSettings(path="a"))
    text = commented_toml(document_of(least))
    assert {*SECTIONS, AnyKnownSettings, CountTableSettings, GameSettings} == {
        kind for kind in Section.__subclasses__() if kind.__module__ == Section.__module__
    } - {Settings}
    for section in SECTIONS:
        for key, field in section.model_fields.items():
            if key == "webhooks" or section is GateSettings:
                continue
            assert field.description
            assert re.search(rf"^(# )?{key} = .", text, flags=re.MULTILINE), key
    for key, field in GateSettings.model_fields.items():
        assert f"# {key}: {field.description}" in text
    assert max(map(len, text.splitlines())) <= 120


def test_every_example_in_a_comment_is_a_valid_setting():
    """Each example is set alone; it has the right type, and only settings that exclude each other are refused."""
    least = Settings(input=InputSettings(path="a"))
    lines = commented_toml(document_of(least)).splitlines()
    examples = [line.removeprefix("# ") for line in lines if re.match(r"# [a-z_]+ = ", line)]
    assert len(examples) > 25
    for section in (*SECTIONS, AnyKnownSettings, CountTableSettings):
        for key, field in section.model_fields.items():
            if field.default is None:
                assert field.examples, (section, key)
    document = tomllib.loads("\n".join(line for line in examples if line.partition(" ")[0] not in ("connection",)))
    assert (
        document["attackers"]
        == ScoreSettings(attackers=document["attackers"]).model_dump(exclude_unset=True)["attackers"]
    )
    assert ScoreSettings(distances=document["distances"]).distances == document["distances"]
    hook = {key: document[key] for key in WebhookSettings.model_fields} | {"url": "https://a"}
    assert WebhookSettings.model_validate(hook).timeout == 10
    uncommented = "\n".join(
        line.removeprefix("# ")
        if re.match(r"# (temp|memory_limit|threads|runs|days|junit|weights|l|threshold) = ", line)
        else line
        for line in lines
    )
    settings = Settings.model_validate(tomllib.loads(uncommented))
    assert (settings.run.threads, settings.keep.days, settings.tell.junit) == (4, 90, "risk.xml")


def test_long_lists_have_a_line_for_each_entry():
    names = [f"a column of number {number}" for number in range(9)]
    settings = Settings(input=InputSettings(path="a"), score=ScoreSettings(columns=names, known=names[:2]))
    lines = commented_toml(document_of(settings)).splitlines()
    start = lines.index("columns = [")
    assert lines[start + 1 : start + 11] == [*(f'    "{name}",' for name in names), "]"]
    assert 'known = ["a column of number 0", "a column of number 1"]' in lines
