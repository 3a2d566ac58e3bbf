"""The record of a run, its public version, and the key, which no record holds."""

from __future__ import annotations

import json
import warnings

import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError, OutputError, SeedWarning
from tests.helpers.example_plans import KEY, example_table
from tests.helpers.treatments import Bins, Drawn, Gone, RareAway, RiskyAway

TABLE = example_table()


@pytest.fixture(scope="module")
def done():
    plan = [
        Bins("age"),
        RareAway("job", 8),
        Drawn("sex"),
        RiskyAway("age", 0.9, rows=True, known=("sex", "job")),
        Gone(("zip",)),
    ]
    return gpupif.treat(TABLE, gpupif.Plan(plan, hierarchies={"kept": {"widths": [2]}}))


def test_the_record_lists_the_changes_of_each_treatment(done):
    record = done.record.to_dict()
    bins, rare, drawn, risky, gone = record["treatments"]
    assert bins == {"do": "test_bins", "column": "age", "cells_changed": {"age": len(TABLE)}, "cells_suppressed": {}}
    away = TABLE["job"].map(TABLE["job"].value_counts()).astype(int) < 8
    assert rare["cells_changed"] == rare["cells_suppressed"] == {"job": int(away.sum())}
    assert drawn["found"] == {"probability": 1 / 3, "values": 2}
    assert risky["rows_removed"] == record["rows_removed"] == len(TABLE) - len(done.table) > 0
    assert gone["columns_dropped"] == ["zip"]
    assert record["rows"] == len(TABLE)
    assert record["input"] == {"rows": len(TABLE), "columns": len(TABLE.columns)}
    assert record["hierarchies"] == {"kept": {"widths": [2]}}
    assert set(record["versions"]) == {"gpupif", "numpy", "pandas", "pyarrow"}
    assert record["seconds"]["treat"] > 0


def test_a_public_record_has_no_revealing_counts(done):
    record = done.record.public().to_dict()
    assert set(record) == {"versions", "treatments", "hierarchies"}
    for one in record["treatments"]:
        assert set(one) <= {"do", "column", "columns", "above", "known", "rows", "below", "columns_dropped", "found"}
    assert record["treatments"][2]["found"] == {"probability": 1 / 3}
    assert done.record.to_dict()["rows"] == len(TABLE)


def test_a_public_record_does_not_reveal_frequencies_of_values():
    """Check epsilon with prior replacements: the kept share would tell the share of the rarest value."""
    plan = [
        gpupif.treatments.RandomizedResponse("job", epsilon=1.0, replaced="prior"),
        gpupif.treatments.Swap(["income"], within=["sex"], share=0.5),
    ]
    done = gpupif.treat(TABLE, plan, key=KEY)
    one, other = done.record.to_dict()["treatments"]
    assert {"keep", "epsilon", "replaced_by_each"} < set(one["found"])
    assert other["found"]["rows_swapped"] > 0
    one, other = done.record.public().to_dict()["treatments"]
    assert set(one["found"]) == {"values", "values_from"}
    assert "found" not in other


def test_a_public_record_lists_no_values():
    jobs = list(TABLE["job"].dropna().unique())
    plan = gpupif.Plan(
        [
            gpupif.treatments.Recode("sex", level=1),
            gpupif.treatments.Recode("job", mapping=dict.fromkeys(jobs, "any"), unmapped="keep"),
            gpupif.treatments.RandomizedResponse("sex", keep=0.5, values=["*", "unused"], missing="category"),
        ],
        hierarchies={
            "sex": {"values": {one: ["*"] for one in TABLE["sex"].dropna().unique()}},
            "note": {"common": ["often", "seldom"], "keep": [1]},
            "kept": {"widths": [2]},
        },
    )
    record = gpupif.treat(TABLE, plan, key=KEY).record
    public = record.public().to_dict()
    assert public["hierarchies"] == {
        "sex": {"values": "left out"},
        "note": {"common": "left out", "keep": [1]},
        "kept": {"widths": [2]},
    }
    level, mapping, drawn = public["treatments"]
    assert (level["level"], mapping["mapping"], drawn["values"], drawn["keep"]) == (1, "left out", "left out", 0.5)
    assert not any(f'"{one}"' in json.dumps(public) for one in [*jobs, "seldom", "unused"])
    assert record.to_dict()["treatments"][1]["mapping"] == dict.fromkeys(jobs, "any")


def test_the_record_prints_as_a_table(done):
    text = str(done.record)
    assert f" of {len(TABLE)} rows, " in text
    assert "test_bins" in text
    assert "100 %" in text
    public = str(done.record.public())
    assert "test_bins" in public
    assert "100 %" not in public


@pytest.mark.parametrize(
    ("widths", "said"),
    [
        ([10], "3 cells changed, most in `age`: 3."),
        ([10, 20], "3 cells changed, most in `age`: 3."),
    ],
)
def test_a_cell_that_two_treatments_change_is_no_two_cells(widths, said):
    plan = [gpupif.treatments.Round("age", base=width) for width in widths]
    assert said in gpupif.treat(pd.DataFrame({"age": [31, 32, 33]}), plan).record.verdict()


def test_the_record_is_saved_whole_and_replaces_no_file(done, tmp_path):
    done.record.save(tmp_path / "record.json")
    assert json.loads((tmp_path / "record.json").read_text()) == done.record.to_dict()
    assert done.record.to_json() == (tmp_path / "record.json").read_text().rstrip("\n")
    with pytest.raises(OutputError, match="overwrite"):
        done.record.save(tmp_path / "record.json")
    done.record.public().save(tmp_path / "record.json", overwrite=True)
    assert "rows" not in json.loads((tmp_path / "record.json").read_text())


def test_estimates_come_from_the_step_that_randomised_the_column(done):
    found = done.estimates("sex")
    assert found["value"].tolist() == ["f", "m"]
    shares = done.table["sex"].value_counts(normalize=True)
    assert found["estimate"].tolist() == [shares["f"], shares["m"]]
    with pytest.raises(InputError, match=r"'age'.*test_risky_away changed it last"):
        done.estimates("age")
    with pytest.raises(InputError, match="no treatment randomised it"):
        done.estimates("note")
    with pytest.raises(InputError, match="no column 'zip'"):
        done.estimates("zip")


RANDOM = [gpupif.treatments.RandomizedResponse("sex", keep=0.5)] if hasattr(gpupif, "RandomizedResponse") else None
needs_random = pytest.mark.skipif(RANDOM is None, reason="no random treatment is public yet")


@needs_random
def test_a_plan_with_random_draws_needs_a_key():
    with pytest.raises(InputError, match=r"key: .*randomized_response.*32 bytes"):
        gpupif.treat(TABLE, RANDOM)
    with pytest.raises(InputError, match="key, seed"):
        gpupif.treat(TABLE, RANDOM, key=KEY, seed=1)
    with pytest.raises(InputError, match="too short"):
        gpupif.treat(TABLE, RANDOM, key=b"short")


@needs_random
def test_a_key_is_read_from_a_file(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(KEY)
    file.chmod(0o600)
    expected = gpupif.treat(TABLE, RANDOM, key=KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = gpupif.treat(TABLE, RANDOM, key=file)
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert found.record.key == expected.record.key
    (tmp_path / "hex").write_text(KEY.hex() + "\n")
    (tmp_path / "hex").chmod(0o644)
    with pytest.warns(UserWarning, match=r"chmod 600"):
        found = gpupif.treat(TABLE, RANDOM, key=str(tmp_path / "hex"))
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert not gpupif.treat(TABLE, RANDOM, key=KEY[::-1]).table.equals(expected.table)


@needs_random
def test_the_key_is_written_nowhere(tmp_path):
    TABLE.to_parquet(tmp_path / "in.parquet")
    done = gpupif.treat_files(tmp_path / "in.parquet", tmp_path / "out", RANDOM, key=KEY)
    done.record.save(tmp_path / "record.json")
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert KEY not in file.read_bytes()
            assert KEY.hex().encode() not in file.read_bytes()
    assert done.record.key == gpupif.treatments.Key.from_any(KEY).digest
    assert done.record.public().to_dict().get("key_digest") is None


@needs_random
def test_a_seed_gives_a_warning():
    with pytest.warns(SeedWarning):
        found = gpupif.treat(TABLE, RANDOM, seed=7)
    with pytest.warns(SeedWarning):
        again = gpupif.treat(TABLE, RANDOM, seed=7)
    pd.testing.assert_frame_equal(found.table, again.table)
    assert found.record.key == "seed"


def test_a_plan_without_random_draws_needs_and_notes_no_key():
    assert gpupif.treat(TABLE, [Bins("age")]).record.key is None
    assert gpupif.treat(TABLE, [Bins("age")], key=KEY).record.key is None


def test_errors_name_the_treatment():
    with pytest.raises(InputError, match=r"treatment 2 \(test_bins\): column: no column 'agee'.*Did you mean 'age'"):
        gpupif.treat(TABLE, [Gone(("zip",)), Bins("agee")])
    with pytest.raises(InputError, match=r"treatment 2 \(test_bins\): column: no column 'zip'"):
        gpupif.treat(TABLE, [Gone(("zip",)), Bins("zip")])


def test_a_treatment_is_named_once():
    with pytest.raises(InputError, match=r"^treatment 1 \(recode\): column 'age': no place in the mapping"):
        gpupif.treat(TABLE, [gpupif.treatments.Recode("age", mapping={-5: 1})])
    with pytest.raises(InputError, match=r"^plan: treatment 1 \(jitter\): column 'age': within: expected"):
        gpupif.Plan([gpupif.treatments.Jitter("age", 0)])
