"""Roles of columns, and files of roles."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.attack.roles import ROLES

NAMES = st.text(st.characters(codec="utf-8"), max_size=12)


@given(
    st.dictionaries(NAMES, st.sampled_from([role for role in ROLES if role != "weight"]), max_size=6),
    st.one_of(st.none(), NAMES),
    st.text(max_size=200),
)
@settings(deadline=None)
def test_written_roles_are_read_back(tmp_path_factory, roles, weight, reason):
    """Write any names of columns and any comments."""
    columns = {**roles, **({} if weight is None else {weight: "weight"})}
    file = tmp_path_factory.getbasetemp() / "roles.toml"
    file.write_bytes(gpupif.results.Roles(columns).to_toml(dict.fromkeys(columns, reason)).encode())
    read = gpupif.read_roles(file)
    assert list(read.items()) == list(columns.items())
    assert read == gpupif.results.Roles(columns)
    assert (read.weight, len(read)) == (weight, len(columns))


def test_roles_list_their_columns():
    roles = gpupif.results.Roles(
        {
            "a": "sensitive",
            "b": "quasi-identifier",
            "c": "weight",
            "d": "identifier",
            "e": "leave out",
            "f": "sensitive",
        }
    )
    assert roles.identifiers == ["d"]
    assert roles.quasi_identifiers == ["b"]
    assert roles.sensitive == ["a", "f"]
    assert roles.weight == "c"
    assert roles.left_out == ["e"]
    assert roles.scored == ["a", "b", "f"]
    assert (roles["a"], "z" in roles) == ("sensitive", False)
    assert gpupif.results.Roles({"a": "sensitive"}).weight is None


def test_the_file_says_what_the_roles_mean_and_why_each_was_proposed(tmp_path):
    file = tmp_path / "roles.toml"
    found = gpupif.inspect(gpupif.datasets.pif_example())
    found.write(file)
    text = file.read_text()
    assert text.endswith(
        "\n[roles]\n"
        "# its name says sex or gender: others may know it\n"
        'gender = "quasi-identifier"\n'
        "# its name says names: HIPAA (A)\n"
        'name = "identifier"\n'
        "# its name says visible traits: others may know it\n"
        'eye_color = "quasi-identifier"\n'
    )
    assert all(role in text[: text.index("[roles]")] for role in ROLES)
    assert max(map(len, text.splitlines())) <= 120
    with pytest.raises(gpupif.errors.OutputError, match="exists already"):
        found.write(file)
    found.write(file, overwrite=True)
    assert gpupif.read_roles(file) == found.roles


@pytest.mark.parametrize("name", [3, ("a", "b"), None, "\ud800"])
def test_names_that_no_file_holds_are_refused(tmp_path, name):
    with pytest.raises(gpupif.errors.OutputError, match=r"TOML: expected .*text.* Rename it"):
        gpupif.results.Roles({name: "sensitive"}).write(tmp_path / "roles.toml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"expected a table \[roles\] of columns, got none"),
        ("roles = 3", r"expected a table \[roles\]"),
        ("[roles]\na = 'sensitiv'", "column 'a': expected one of .*; got 'sensitiv'. Did you mean 'sensitive'"),
        ("[roles]\na = 3", "column 'a': expected one of 'identifier', .*; got 3"),
        ("[roles]\na = 'weight'\nb = 'weight'", "expected one column of weights at most, got 'a', 'b'"),
        ("[roles]\na.b = 'weight'", "column 'a': expected a role, got a table. .* quotes: \"a.b\""),
        ("[roles]\na b = 'weight'", "expected TOML, got what is none: .*line 2.* in quotes"),
        ("[roles]\na = 'weight'\na = 'weight'", "expected TOML, got what is none: .* A name stands once"),
        ("[roles]\na = 'weight'\n[rules]", "expected nothing beside .*got 'rules'"),
        (b"\xff", "expected TOML in UTF-8"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, text, words):
    file = tmp_path / "roles.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(gpupif.InputError, match=words) as raised:
        gpupif.read_roles(file)
    assert str(raised.value).startswith(f"roles: {file}")
    assert "\n" not in str(raised.value)


def test_missing_or_other_files_are_refused(tmp_path):
    with pytest.raises(gpupif.InputError, match=r"none.toml: could not be read: No such file"):
        gpupif.read_roles(tmp_path / "none.toml")
    with pytest.raises(gpupif.InputError, match="could not be read: Is a directory"):
        gpupif.read_roles(tmp_path)
    with pytest.raises(gpupif.InputError, match="expected the path of a file of roles, got 3"):
        gpupif.read_roles(3)
    with pytest.raises(gpupif.errors.OutputError, match=r"ending in .toml"):
        gpupif.results.Roles({}).write(tmp_path / "roles.json")
    with pytest.raises(gpupif.InputError, match=r"path: expected the path of a \.toml file, got None"):
        gpupif.results.Roles({}).write(None)


def test_roles_of_another_table_are_refused():
    roles = gpupif.results.Roles({"a": "sensitive", "b": "quasi-identifier"})
    roles.check(["b", "a"])
    roles.check(["b", "index", "a"], ["index"])
    treated = gpupif.results.Roles({"a": "sensitive", "id": "identifier", "note": "leave out"}).check(["a", "id"])
    assert dict(treated) == {"a": "sensitive", "id": "identifier"}
    with pytest.raises(gpupif.errors.ColumnNotFoundError, match="roles: no column 'b' in the table"):
        roles.check(["a"])
    with pytest.raises(gpupif.InputError, match="roles: expected a role for each column, got none for 'c', 'd'"):
        roles.check(["a", "b", "c", "d"])
    with pytest.raises(gpupif.InputError, match="roles: expected at least one column to be a 'quasi-identifier'"):
        gpupif.results.Roles({"a": "sensitive"}).known()


def test_a_byte_order_mark_is_skipped(tmp_path):
    """Read a file as some editors write it."""
    (tmp_path / "r.toml").write_bytes('\ufeff[roles]\nage = "quasi-identifier"\n'.encode())
    assert gpupif.read_roles(tmp_path / "r.toml")["age"] == "quasi-identifier"
