"""JSON and TOML that are nested deeper than any document: one error that names the file."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError
from gpupif.io.documents import MOST_LEVELS, parse_json, parse_toml
from gpupif.nightly.configuration.config import load_config

TABLE = pd.DataFrame({"a": ["x", "y", "x"], "b": [1, 2, 2]})
READERS = {
    "priors": ("p.json", lambda file: gpupif.score(TABLE, priors=file)),
    "accuracies": ("p.json", lambda file: gpupif.score(TABLE, accuracies=file)),
    "distances": ("p.json", lambda file: gpupif.score(TABLE, "emd", distances={"a": file})),
    "plan": ("plan.toml", gpupif.Plan.load),
    "plan in JSON": ("plan.json", gpupif.Plan.load),
    "plan in YAML": ("plan.yaml", gpupif.Plan.load),
    "hierarchies": ("h.toml", gpupif.read_hierarchies),
    "hierarchies in JSON": ("h.json", gpupif.read_hierarchies),
    "roles": ("roles.toml", gpupif.read_roles),
    "nightly": ("risk.toml", load_config),
}
DEEP = {
    ".json": ["[" * 100_000, '{"a": ' * 400 + "1" + "}" * 400, '{"a": ' + "[" * 400 + "]" * 400 + "}"],
    ".toml": [".".join(["a"] * 20_000) + " = 1", "a = " + "[" * 400 + "]" * 400, "[" + ".".join(["a"] * 400) + "]"],
    ".yaml": ["[" * 600, "a: &a [*a]", '{"a": ' * 150 + "1" + "}" * 150],
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "read"), READERS.values(), ids=READERS)
def test_a_document_nested_too_deep_is_refused_in_one_line(tmp_path, name, read):
    file = tmp_path / name
    for text in DEEP[file.suffix]:
        file.write_text(text)
        with pytest.raises(InputError, match=r"nested more than 100 levels deep") as caught:
            read(file)
        assert file.name in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400


def test_a_document_may_have_100_levels_and_no_key_twice():
    assert parse_json("[" * MOST_LEVELS + "1" + "]" * MOST_LEVELS)
    assert parse_toml("a = 1") == {"a": 1}
    assert parse_toml(".".join(["a"] * MOST_LEVELS) + " = 1")
    assert parse_json(b'"text"') == "text"
    with pytest.raises(ValueError, match="nested"):
        parse_json("[" * (MOST_LEVELS + 1) + "]" * (MOST_LEVELS + 1))
    with pytest.raises(ValueError, match="'a' occurs twice"):
        parse_json('{"a": 1, "a": 2}')


def test_no_other_module_parses_json_or_toml():
    root = Path(gpupif.__file__).parent
    for file in root.rglob("*.py"):
        found = re.findall(r"json\.loads?\(|import tomllib", file.read_text("utf-8"))
        assert not found or file == root / "io" / "documents.py", file
