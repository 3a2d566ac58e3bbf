"""The query auditor: known attacks are found, and all that is found, or not, is so by definition."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.release.audit import ALL_ROWS
from gpupif.release.query_file import read_queries
from gpupif.release.query_sets import count_rows, membership
from gpupif.release.row_space import PRIMES, RowSpace, inverse_of
from gpupif.utils.progress import Reporter

STAFF = pd.DataFrame(
    {
        "name": [f"N{row}" for row in range(19)] + ["R"],
        "sex": ["F", "M"] * 10,
        "team": ["a"] * 10 + ["b"] * 10,
        "salary": [30 + row % 7 for row in range(19)] + [90],
    }
)
MEAN = {"kind": "mean", "column": "salary"}
MR_R = [MEAN | {"name": "mean before"}, MEAN | {"name": "mean after", "where": "name != 'R'"}]


def sums(**conditions):
    return [{"name": name, "kind": "sum", "column": "salary", "where": where} for name, where in conditions.items()]


def matrix_of(table, queries):
    asked = read_queries(queries)
    return membership(count_rows(table, asked, [], Reporter(False)), [query.condition for query in asked])


def rank(rows):
    """The rank over the rational numbers, by elimination."""
    rows, found = [[Fraction(int(one)) for one in row] for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in range(found, len(rows)) if rows[row][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for row in range(found + 1, len(rows)):
            times = rows[row][column] / rows[found][column]
            rows[row] = [a - times * b for a, b in zip(rows[row], rows[found], strict=True)]
        found += 1
    return found


def test_the_mean_before_and_after_mr_r_left():
    found = gpupif.audit(MR_R, STAFF)
    worst = found.findings.iloc[0]
    assert [worst["finding"], worst["rows"], worst["group"]] == ["value", 1, "name = R"]
    assert worst["by"] == "mean before × 20 − mean after × 19"
    assert "name = R" in found.verdict()[1]
    assert "name" not in found.verdict(redact=True)[1]
    # Without the table as well, of a group of unknown size; and the second query is refused.
    assert gpupif.audit(MR_R).findings.loc[0, "group"] == "name = R"
    assert gpupif.audit(MR_R[:1], STAFF, next=MR_R[1]).allowed is False


def test_trackers():
    # An individual tracker: C1 and not C2, where only Mr R meets C1 and C2.
    queries = sums(C1="team = 'b'", T="team = 'b' and not (sex = 'M' and name = 'R')")
    assert gpupif.audit(queries, STAFF).findings.loc[0, "by"] == "C1 − T"
    # A general tracker: q(C) = q(C or T) + q(C or not T) - q(all), all = q(T) + q(not T), with C Mr R alone.
    queries = sums(CT="name = 'R' or sex = 'F'", CnT="name = 'R' or sex = 'M'", T="sex = 'F'", nT="sex = 'M'")
    worst = gpupif.audit(queries, STAFF).findings.iloc[0]
    assert (worst["finding"], worst["rows"]) == ("value", 1)
    # Mr R is a man: CnT says nothing new, and two queries do.
    assert worst["by"] == "CT − T"


def test_disjoint_queries_pass():
    queries = sums(a="team = 'a'", b="team = 'b'")
    for table in (STAFF, None):
        found = gpupif.audit(queries, table)
        assert found.disclosed == 0
        assert found.findings.empty
        assert "nothing found" in str(found)
    assert gpupif.audit(queries[:1], STAFF, next=queries[1]).allowed is True
    # Two groups that one query told apart from the rest: the rest of 4 rows follows from the number of all rows.
    counts = [{"name": "most", "where": "name < 'N2'"}, {"name": "more", "where": "name >= 'N2' and name < 'N6'"}]
    found = gpupif.audit(counts, STAFF, k=6).findings
    assert (found.loc[0, "finding"], found.loc[0, "rows"]) == ("count", 4)
    assert ALL_ROWS in " ".join(found["by"])


def test_set_size_overlap_and_number():
    queries = sums(few="name in ('R', 'N1')", most="not name in ('R', 'N1')", F="sex = 'F'", a="team = 'a'")
    found = gpupif.audit(queries, STAFF, k=3, most=3, overlap=4)
    kinds = dict(zip(found.findings["finding"], found.findings["by"], strict=True))
    assert kinds["number of queries"] == "4, at most 3"
    assert kinds["overlap"] in {"F and a", "most and F", "most and a"}
    assert list(found.findings["finding"]).count("overlap") == 3
    # The two of `few` are a group by themselves.
    assert (kinds["set size"], kinds["sum"]) == ("most, expected 3 to 17 rows", "few")
    assert gpupif.audit(queries[2:], STAFF, overlap=5).disclosed == 0


def test_a_group_stays_given_away_when_queries_tell_its_rows_apart():
    queries = sums(outer="sex = 'F'", inner="sex = 'F' and not name in ('N0', 'N2', 'N4')")
    splits = sums(one="name = 'N0' or team = 'b'", two="name = 'N2' or team = 'b'", three="sex = 'F' or team = 'a'")
    for more in range(4):
        found = gpupif.audit(queries + splits[:more], STAFF, k=4)
        assert found.findings[["finding", "rows", "by"]].values.tolist()[0] == ["sum", 3, "outer − inner"]
        assert found.findings.loc[0, "group"] == "sex = F and (name = N0 or name = N2 or name = N4)"
        assert found.disclosed == 1
        # It was given away before: the next query adds nothing.
        asked = gpupif.audit(queries, STAFF, k=4, next=splits[:more]) if more else None
        assert asked is None or (asked.allowed, asked.disclosed) == (True, 1)


@pytest.mark.parametrize(
    ("less", "group"),
    [
        ("sex = 'F' and age < 89", "sex = F and not age < 89"),
        ("sex = 'F' and not age >= 89", "sex = F and age >= 89"),
        ("sex = 'F' and age <= 88 and not age is missing", "sex = F and age > 88"),
        ("sex = 'F' and (age <= 20 or age > 21 and age < 89)", "sex = F and age >= 89"),
        ("sex = 'F' and age in (1, 2)", "sex = F and not (age = 1 or age = 2)"),
    ],
)
def test_a_group_has_the_conditions_of_the_queries_that_give_it_away(less, group):
    table = pd.DataFrame(
        {"sex": ["F"] * 9 + ["M"] * 9, "age": [1, 2] * 4 + [95] + [1, 2] * 4 + [None], "pay": range(18)}
    )
    queries = [{"name": name, "where": where} for name, where in {"all": "sex = 'F'", "less": less}.items()]
    # Another query has conditions that the group meets too.
    found = gpupif.audit([*queries, {"name": "other", "where": "pay > 4 and pay < 14"}], table, k=2).findings
    assert found[["group", "by"]].values.tolist() == [[group, "all − less"]]


@pytest.mark.parametrize("way", ["polars", "csv", pytest.param("dask", marks=pytest.mark.slow)])
def test_every_kind_of_table(way, tmp_path, on_cpu):
    want = gpupif.audit(MR_R, STAFF)
    if way == "polars":
        table = pytest.importorskip("polars").from_pandas(STAFF)
    elif way == "csv":
        table = tmp_path / "staff.csv"
        STAFF.to_csv(table, index=False)
    else:
        table = pytest.importorskip("dask.dataframe").from_pandas(STAFF, npartitions=3)
    found = gpupif.audit(MR_R, table)
    pd.testing.assert_frame_equal(found.findings, want.findings)


def test_bounds():
    # The lowest possible mean: everybody has the lowest value.
    table = pd.DataFrame({"g": ["x"] * 6 + ["y"] * 6, "v": [0] * 6 + [1, 2, 3, 4, 5, 6]})
    queries = [{"name": one, "kind": "sum", "column": "v", "where": f"g = '{one}'"} for one in "xy"]
    found = gpupif.audit(queries, table, bounds={"v": (0, None)})
    assert found.findings[["finding", "group", "low", "high"]].values.tolist() == [["bounded", "g = x", 0.0, 0.0]]
    # With an upper bound: a sum of 21 of six values up to 4 leaves each 1 to 4.
    found = gpupif.audit(queries[1:], table, bounds={"v": (0, 4)}, width=3)
    assert found.findings[["low", "high"]].values.tolist() == [[1.0, 4.0]]
    assert gpupif.audit(queries[1:], table, bounds={"v": (0, 4)}, width=2.9).disclosed == 0
    assert gpupif.audit(queries, table, bounds={"v": (None, None)}).disclosed == 0


def test_missing_values_are_in_no_sum():
    table = STAFF.assign(salary=STAFF["salary"].where(STAFF["name"] != "N3"))
    # Rows with and without N3 have the same sum: N3 has no salary.
    found = gpupif.audit(sums(all="sex != 'X'", rest="name != 'N3'"), table).findings
    assert set(found["finding"]) == {"set size"}


def test_conditions_hold_as_pandas_has_it():
    table = pd.DataFrame(
        {"n": [1, 2, 3, None, 2**53], "t": ["a", "b'c", None, "d", "b"], "d": [True, False] * 2 + [True]}
    )
    for where, rows in {
        "n >= 2 and n < 4": [1, 2],
        "not n >= 2": [0, 3],
        "n is missing or t is missing": [2, 3],
        "t = 'b''c' or t > 'c'": [1, 3],
        'd = true and "n" not in (1, 2.5)': [2, 4],
        "t != 'a' and n <= 3": [1, 2],
    }.items():
        assert matrix_of(table, {"name": "q", "where": where}).set_sizes.tolist() == [len(rows)], where


@pytest.mark.parametrize(("sums", "most"), [(1, 16), (3, 1)])
def test_what_follows_is_what_is_in_the_row_space(sums, most, monkeypatch):
    """Every group, and every combination, against elimination over fractions."""
    # Few random sums, few atoms as pivots, and hashes that are equal too often.
    monkeypatch.setattr("gpupif.release.row_space.FEWEST_SUMS", sums)
    monkeypatch.setattr("gpupif.release.row_space.PER_QUERY", most)
    monkeypatch.setattr("gpupif.release.query_sets.HASHES", 50)
    random = np.random.default_rng(sums)
    given_away = in_groups = 0
    for _ in range(40):
        table = pd.DataFrame({"a": np.arange(8), "b": random.integers(0, 3, 8)})
        queries = [
            {"name": str(number), "where": f"a in ({', '.join(map(str, np.flatnonzero(held)))})"}
            for number, held in enumerate(random.random((random.integers(1, 9), 8)) < random.choice([0.3, 0.5, 0.8]))
            if held.any()
        ]
        if not queries:
            continue
        matrix = matrix_of(table, queries)
        dense = matrix.columns(np.arange(len(matrix.sizes))).toarray()
        space = RowSpace(matrix)
        found = {int(atom): space.combination([int(atom)]) for atom in space.candidates()}
        unit = np.eye(dense.shape[1], dtype=int)
        for atom in range(dense.shape[1]):
            if rank([*dense, unit[atom]]) == rank(dense):
                combination = found.pop(atom)
                total = sum(number * dense[query] for query, number in combination.numbers.items())
                assert (total == combination.denominator * unit[atom]).all()
                given_away += 1
        assert not any(found.values())
        alone = set(np.flatnonzero(~space._null_vectors.any(axis=1)).tolist())
        groups = {atoms for atoms in space.small_groups(5)[0] if space.combination(atoms) is not None}
        want: set[tuple[int, ...]] = set()
        for size in (2, 3, 4):
            for atoms in combinations(sorted({*range(dense.shape[1])} - alone), size):
                if matrix.sizes[list(atoms)].sum() >= 5 or any(own < set(atoms) for own in map(set, want)):
                    continue
                whole = np.vstack([dense, unit[list(atoms)].sum(axis=0)])
                if np.linalg.matrix_rank(whole) == np.linalg.matrix_rank(dense):
                    want.add(atoms)
        assert groups == want
        in_groups += len(want)
    assert given_away > 50
    assert in_groups > 50


def test_combinations_with_large_numbers():
    """A square matrix of full rank gives everything away, by combinations of numbers beyond the prime."""
    held = np.random.default_rng(1).random((25, 25)) < 0.5
    queries = [
        {"name": str(number), "where": f"a in ({', '.join(map(str, np.flatnonzero(own)))})"}
        for number, own in enumerate(held)
    ]
    space = RowSpace(matrix_of(pd.DataFrame({"a": np.arange(25)}), queries))
    assert rank(held) == 25
    combination = space.combination([7])
    dense = space.matrix.columns(np.arange(25)).toarray().astype(object)
    total = sum(number * dense[query] for query, number in combination.numbers.items())
    assert list(total) == [combination.denominator * (atom == 7) for atom in range(25)]
    assert combination.denominator > 1000


def test_a_prime_that_divides_the_determinant():
    """The rank modulo the first prime is too low."""
    size = 40
    held = np.random.default_rng(2).random((size - 1, size)) < 0.5
    # Modulo the prime, the last row is to be 0 along the vector along which the others are.
    inverse, rows, columns = inverse_of(held.astype(np.int64), PRIMES[0])
    [free] = set(range(size)) - set(columns.tolist())
    null = np.zeros(size, np.int64)
    null[columns], null[free] = -inverse @ held[rows, free] % PRIMES[0], 1
    halves = (np.arange(1 << 14)[:, None] >> np.arange(14)) & 1
    sums = halves @ null[:14] % PRIMES[0], -(halves @ null[14:28]) % PRIMES[0]
    _, *pairs = np.intersect1d(*sums, return_indices=True)
    lasts = (np.hstack([halves[left], halves[right], [0] * 12]) for left, right in zip(*pairs, strict=True))
    last = next(own for own in lasts if np.linalg.matrix_rank([*held, own]) == size)
    queries = [
        {"name": str(number), "where": f"a in ({', '.join(map(str, np.flatnonzero(own)))})"}
        for number, own in enumerate([*held, last])
    ]
    assert rank([*held, last]) == size
    assert len(inverse_of(np.vstack([held, last]).astype(np.int64), PRIMES[0])[1]) == size - 1
    space = RowSpace(matrix_of(pd.DataFrame({"a": np.arange(size)}), queries))
    assert space.candidates().tolist() == list(range(size))


@pytest.mark.parametrize(
    ("queries", "more", "said"),
    [
        ([], {}, "at least one query"),
        ([{"kind": "sum"}], {}, "has no name"),
        ([{"name": "a", "kind": "median"}], {}, "'count' or 'sum' or 'mean'"),
        ([{"name": "a", "kind": "sum"}], {}, "the name of the column"),
        ([{"name": "a"}, {"name": "a"}], {}, "two queries are called 'a'"),
        ([{"name": "a", "wher": "x"}], {}, "Did you mean 'where'"),
        ([{"name": "a", "where": "sex == 'F'"}], {}, "Equal is one '='"),
        ([{"name": "a", "where": "sx = 'F'"}], {}, "no column 'sx'"),
        ([{"name": "a", "where": "sex = 1"}], {}, "compared with numbers"),
        ([{"name": "a", "where": "salary > 'x'"}], {}, "compared with texts"),
        ([{"name": "a", "where": "salary > 'x' or salary = 3"}], {}, "numbers and with the text"),
        (MR_R, {"k": 1}, "2 or more"),
        ([{"name": "a", "kind": "mean", "column": "team"}], {}, "column 'team': expected numbers .* got 'a'"),
        (MR_R, {"bounds": {"salary": (3, 1)}}, "the lowest and the highest"),
        (MR_R, {"bounds": {"salry": (0, 1)}}, "no column 'salry'"),
        (MR_R, {"bounds": {"salary": (0, 1)}}, "no values of 'salary' within these bounds"),
        (MR_R, {"bounds": {"salary": (0, None)}, "next": {"name": "n"}}, "decided without answers"),
    ],
)
def test_bad_input_is_refused_in_one_line(queries, more, said):
    with pytest.raises(gpupif.InputError, match=said) as caught:
        gpupif.audit(queries, STAFF, **more)
    assert "\n" not in str(caught.value)


def test_command_line(run, folder):
    STAFF.to_csv("staff.csv", index=False)
    (folder / "q.toml").write_text(
        "[[query]]\nname = 'before'\nkind = 'sum'\ncolumn = 'salary'\n"
        "[[query]]\nname = 'after'\nkind = 'sum'\ncolumn = 'salary'\nwhere = \"not name = 'R'\"\n"
    )
    (folder / "next.toml").write_text("[[query]]\nname = 'team'\nwhere = \"team = 'a'\"\n")
    ended = run("audit", "q.toml", "--table", "staff.csv", "--report", "r.html", "--redact")
    # There is a finding.
    assert ended.code == 3
    assert "before − after" in ended.out
    page = (folder / "r.html").read_text()
    assert "What the queries give away" in page
    assert "name = R" not in page
    # The next query adds none.
    assert run("audit", "q.toml", "--table", "staff.csv", "--next", "next.toml").code == 0
