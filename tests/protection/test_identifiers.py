"""Columns that name persons: what the plan does with them, and the warning of those that nobody named."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpupif
from gpupif.protection import identifiers as module

ROWS = 120
KNOWN = {"quasi_identifiers": ["age", "sex"], "sensitive": "ill"}


def people():
    """A table with identifiers of several kinds."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "person_id": rng.permutation(np.arange(200_000, 200_000 + ROWS)),
            "email": [f"somebody{number}@example.org" for number in range(ROWS)],
            "household": rng.integers(500_000, 500_080, ROWS),
            "age": rng.integers(20, 40, ROWS),
            "sex": rng.choice(["f", "m"], ROWS),
            "ill": rng.choice(["a", "b", "c"], ROWS),
        }
    )


def protect(table, **arguments):
    """The protection of a table, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = gpupif.protect(table, "k>=3", **arguments)
    return found, [str(one.message) for one in caught if issubclass(one.category, gpupif.errors.IdentifierWarning)]


def every_kind(table, folder):
    """The table as every kind of table."""
    from dask import dataframe as dd

    table.to_parquet(folder / "t.parquet")
    table.to_csv(folder / "t.csv", index=False)
    yield table
    yield pl.from_pandas(table)
    yield pa.Table.from_pandas(table)
    yield dd.from_pandas(table, npartitions=3)
    yield folder / "t.parquet"
    yield str(folder / "t.csv")


@pytest.mark.usefixtures("on_cpu")
def test_identifiers_are_dropped_and_listed(tmp_path):
    for table in every_kind(people(), tmp_path):
        found, said = protect(table, identifiers=["person_id", "email"], keep="household", **KNOWN)
        assert said == []
        assert found.identifiers == {"person_id": "drop", "email": "drop", "household": "keep"}
        assert found.plan.treatments[0] == gpupif.treatments.Drop(["person_id", "email"])
        assert "; drops person_id and email; leaves household unchanged" in " ".join(str(found).split())
        assert found.to_dict()["identifiers"] == found.identifiers
    after = gpupif.treat(people(), found.plan).table
    assert list(after) == ["household", "age", "sex", "ill"]
    assert gpupif.risk(after, ["age", "sex"]).k == found.risk[0].value >= 3


def test_identifiers_may_get_pseudonyms_by_a_secret_key(tmp_path):
    table = people()
    found, said = protect(table, identifiers=["person_id", "email"], pseudonymise=["person_id", "household"], **KNOWN)
    assert said == []
    assert found.identifiers == {"person_id": "pseudonymise", "email": "drop", "household": "pseudonymise"}
    assert "puts pseudonyms in person_id and household, by a secret key; cost: " in " ".join(str(found).split())
    found.plan.save(tmp_path / "plan.toml")
    with pytest.raises(gpupif.InputError, match="takes a secret key"):
        gpupif.treat(table, tmp_path / "plan.toml")
    after = gpupif.treat(table, tmp_path / "plan.toml", key=bytes(range(32))).table
    assert list(after) == ["person_id", "household", "age", "sex", "ill"]
    for name in ("person_id", "household"):
        pairs = pd.DataFrame({"old": table[name], "new": after[name].astype(str)}).drop_duplicates()
        assert pairs["new"].is_unique
        assert pairs["old"].is_unique
        assert pairs["new"].str.fullmatch("[0-9a-f]{32}").all()


def test_plan_that_drops_identifiers_is_compared():
    table = people()
    found, _ = protect(table, identifiers=["person_id", "email", "household"], **KNOWN)
    after = gpupif.treat(table, found.plan).table
    compared = gpupif.compare(table, after, found.plan, **KNOWN)
    assert compared.to_dict()


def test_identifiers_are_no_quasi_identifiers_by_default():
    table = people()
    found, _ = protect(
        table, identifiers=["person_id"], pseudonymise=["email"], keep=["household"], sensitive="ill", suppress=0.1
    )
    assert list(found.levels) == ["age", "sex"]
    same, _ = protect(table.drop(columns=["person_id", "email", "household"]), sensitive="ill", suppress=0.1)
    assert (found.levels, found.loss, found.risk) == (same.levels, same.loss, same.risk)
    # What is kept an attacker may still know.
    found = gpupif.protect(
        table, "nb: k>=1", identifiers=["person_id", "email"], keep="household", sensitive="ill",
        attackers={"nb": ["household", "age"]},
    )  # fmt: skip
    assert list(found.levels) == ["age", "sex"]


@pytest.mark.usefixtures("on_cpu")
def test_a_warning_names_columns_that_look_like_identifiers(tmp_path):
    for table in every_kind(people(), tmp_path):
        _, said = protect(table, **KNOWN)
        assert len(said) == 1
        kinds = "'person_id' (numbers of persons), 'email' (e-mail addresses), 'household' (household numbers)"
        assert f"columns {kinds} look like identifiers" in said[0]
        assert "identifiers=" in said[0]
        assert "pseudonymise=" in said[0]
        assert "keep=" in said[0]


def test_a_warning_names_only_identifiers_that_no_argument_names():
    table = people().drop(columns="household")
    assert protect(table, identifiers="email", keep="person_id", **KNOWN)[1] == []
    assert "column 'email' (e-mail addresses) looks like" in protect(table, keep="person_id", **KNOWN)[1][0]
    assert protect(table.drop(columns=["person_id", "email"]), **KNOWN)[1] == []
    # A quasi-identifier by default is looked at, one that was named is not.
    two = table[["email", "age"]].head(20)
    assert "'email'" in protect(two)[1][0]
    assert protect(two, quasi_identifiers=["email", "age"])[1] == []


def test_a_warning_names_free_text_and_unnamed_codes():
    table = people().drop(columns=["person_id", "email"])
    table["remark"] = [f"somebody came at {number} and said that nothing was wrong" for number in range(ROWS)]
    table["x17"] = [f"z{number * 7919 % 1000}q" for number in range(ROWS)]
    _, said = protect(table, **KNOWN)
    assert "'remark' (free text), 'x17' (nearly unique values)" in said[0]


@pytest.mark.slow
@pytest.mark.usefixtures("on_cpu")
def test_only_the_first_rows_are_examined(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "LOOKED_AT", 60)
    table = people().drop(columns=["person_id", "household"])
    table.loc[60:, "email"] = "none"
    for kind in every_kind(table, tmp_path):
        assert "'email' (e-mail addresses)" in protect(kind, **KNOWN)[1][0]
    table = table.iloc[::-1]
    assert protect(table.assign(email=table["email"].to_numpy()), **KNOWN)[1] == []


def indexed_kinds(folder):
    """A table whose index is named and holds e-mail addresses, as every kind of table that keeps an index."""
    from dask import dataframe as dd

    table = people().drop(columns=["person_id", "household"]).set_index("email")
    table.to_parquet(folder / "i.parquet")
    table.to_feather(folder / "i.feather")
    yield table
    yield table.set_index(table["age"].rename("born") + 1900, append=True)
    yield pa.Table.from_pandas(table)
    yield dd.from_pandas(table, npartitions=3, sort=False)
    yield folder / "i.parquet"
    yield str(folder / "i.feather")


@pytest.mark.slow
@pytest.mark.usefixtures("on_cpu")
def test_an_index_that_names_persons_is_warned_of_and_dropped(tmp_path):
    for table in indexed_kinds(tmp_path):
        assert "column 'email' (e-mail addresses) looks like" in protect(table, **KNOWN)[1][0]
        assert protect(table, keep="email", **KNOWN)[1] == []
        found, said = protect(table, identifiers="email", **KNOWN)
        assert said == []
        assert found.identifiers == {"email": "drop"}
        after = gpupif.treat(table, found.plan).table
        after = after.to_pandas() if isinstance(after, pa.Table) else after
        assert "email" not in [*after.columns, after.index.name, *getattr(after.index, "names", ())]
        assert list(after.columns) == ["age", "sex", "ill"]
        assert len(after) == ROWS


def test_an_index_with_the_name_of_a_dropped_column_is_dropped():
    table = people().set_index("email", drop=False)
    after = gpupif.treat(table, protect(table, identifiers=["email", "person_id"], **KNOWN)[0].plan).table
    assert list(after.index) == list(range(ROWS))
    assert "email" not in [*after, *after.index.names]


def test_an_index_of_numbers_is_not_warned_of():
    table = people().drop(columns=["person_id", "email", "household"])
    for index in (table.index, table.index[::-1] * 3 + 17, pd.Index(table.index * 3 + 17, name="x")):
        assert protect(table.set_index(index), **KNOWN)[1] == []


def pieces_of_few_rows(table, folder):
    """A table in pieces of few rows, the first of one row."""
    from dask import dataframe as dd

    (folder / "parts").mkdir()
    table.iloc[:1].to_parquet(folder / "parts" / "0.parquet", index=False)
    table.iloc[1:].to_parquet(folder / "parts" / "1.parquet", index=False)
    table.to_parquet(folder / "groups.parquet", index=False, row_group_size=3)
    (folder / "texts").mkdir()
    table.iloc[:1].to_csv(folder / "texts" / "0.csv", index=False)
    table.iloc[1:].to_csv(folder / "texts" / "1.csv", index=False)
    yield folder / "parts"
    yield folder / "groups.parquet"
    yield folder / "texts" / "*.csv"
    yield dd.concat([dd.from_pandas(table.iloc[:1], npartitions=1), dd.from_pandas(table.iloc[1:], npartitions=7)])


@pytest.mark.slow
@pytest.mark.usefixtures("on_cpu")
def test_chunks_are_gathered_until_there_are_enough_rows(tmp_path):
    """The first chunk alone does not show that a column has identifiers."""
    table = people().drop(columns=["person_id", "household"])
    table.loc[:2, "email"] = "none"
    for kind in pieces_of_few_rows(table, tmp_path):
        assert "column 'email' (e-mail addresses) looks like" in protect(kind, **KNOWN)[1][0]


@pytest.mark.slow
@pytest.mark.usefixtures("on_cpu")
def test_a_column_is_examined_from_its_first_value_on(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "LOOKED_AT", 20)
    table = people().drop(columns=["person_id", "household"])
    table.loc[:70, "email"] = None
    (tmp_path / "few").mkdir()
    kinds = [*every_kind(table, tmp_path), *pieces_of_few_rows(table, tmp_path / "few")]
    for kind in kinds:
        assert module.like_identifiers(kind, ["age", "email"]) == {"email": "e-mail addresses"}
    monkeypatch.setattr(module, "SEARCHED", 71)
    for kind in kinds:
        assert module.like_identifiers(kind, ["age", "email"]) == {}


BAD = [
    ({"identifiers": "emial"}, "identifiers: no column 'emial' in the table. Did you mean 'email'"),
    ({"pseudonymise": "emial"}, "pseudonymise: no column 'emial' in the table"),
    ({"identifiers": ["age"]}, "identifiers: column 'age' is a quasi-identifier too"),
    ({"keep": ["ill"]}, "keep: column 'ill' is sensitive too"),
    ({"pseudonymise": ["email"], "keep": ["email"]}, "keep: column 'email' is to get pseudonyms too"),
    (
        {"identifiers": ["email"], "attackers": {"nb": ["age", "email"]}, "require": "nb: k>=2"},
        "attackers: 'nb': column 'email' is an identifier, which the plan drops",
    ),
    (
        {"identifiers": ["email"], "require": "known=age,email: k>=2"},
        "criterion 'known=age,email: k>=2': column 'email' is an identifier, which the plan drops",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(gpupif.InputError, match=message):
        gpupif.protect(people(), **{"require": "k>=3", **KNOWN, **arguments})


def test_identifiers_of_roles_are_dropped(tmp_path):
    """Except those that an argument makes something else."""
    (tmp_path / "roles.toml").write_text(
        '[roles]\nperson_id = "identifier"\nemail = "identifier"\nhousehold = "identifier"\n'
        'age = "quasi-identifier"\nsex = "quasi-identifier"\nill = "sensitive"\n'
    )
    for roles in (tmp_path / "roles.toml", gpupif.read_roles(tmp_path / "roles.toml")):
        found, said = protect(people(), roles=roles, pseudonymise="household")
        assert said == []
        assert found.identifiers == {"person_id": "drop", "email": "drop", "household": "pseudonymise"}
    found, _ = protect(people(), roles=tmp_path / "roles.toml", quasi_identifiers=["age", "household"], keep="email")
    assert found.identifiers == {"person_id": "drop", "email": "keep"}
