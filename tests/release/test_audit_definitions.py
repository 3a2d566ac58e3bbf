"""Audits without a table: what the definitions of queries isolate, against all sets of atoms."""

import numpy as np
import pytest

import gpupif
from gpupif.release.isolated_groups import isolated_groups
from gpupif.release.query_file import read_queries
from gpupif.release.query_sets import formal_rows, membership


def query(where, name=None):
    return {"name": name or where, "kind": "sum", "column": "pay", "where": where}


def workload(random, values):
    """Some random queries over the values of a column, or over two columns."""
    made = {}
    for _ in range(random.integers(2, 8)):
        held = np.flatnonzero(random.random(values) < random.choice([0.3, 0.5]))
        if len(held):
            where = f"a in ({', '.join(map(str, held))})"
            made[
                f"{where} or b = 1" if random.random() < 0.2 else f"not {where}" if random.random() < 0.1 else where
            ] = 0
    return [query(where) for where in made]


def matrix_of(queries):
    asked = read_queries(queries)
    matrix = membership(formal_rows(asked), [own.condition for own in asked])
    return matrix, matrix.columns(np.arange(len(matrix.sizes))).toarray()


def follow(sets, dense):
    """Which of some sets of atoms follow from others: they are 0 along all vectors along which the others are 0."""
    _, sizes, vectors = np.linalg.svd(dense)
    null = vectors[(sizes > 1e-9).sum() :]
    return (abs(sets @ null.T) < 1e-9).all(axis=1)


def follows(row, rows):
    return bool(follow(row[None], rows)[0]) if len(rows) else not row.any()


def smallest(dense):
    """All sets that follow and have no other such set inside."""
    sets = (np.arange(1, 1 << dense.shape[1])[:, None] >> np.arange(dense.shape[1])) & 1
    found = [set(np.flatnonzero(own)) for own in sets[follow(sets, dense)]]
    return {tuple(sorted(own)) for own in found if not any(other < own for other in found)}


@pytest.mark.parametrize("values", [4, 6])
def test_all_smallest_groups_but_those_asked_for_are_given_away(values):
    random = np.random.default_rng(values)
    number = 0
    for _ in range(40):
        queries = workload(random, values)
        if not queries:
            continue
        matrix, dense = matrix_of(queries)
        asked = {tuple(np.flatnonzero(row)) for place, row in enumerate(dense) if not follows(row, dense[:place])}
        found, are_all = isolated_groups(matrix)
        assert are_all
        assert {atoms for atoms, _ in found} == smallest(dense) - asked
        for atoms, combination in found:
            total = sum(times * dense[own] for own, times in combination.numbers.items())
            assert (total == combination.denominator * np.isin(np.arange(dense.shape[1]), atoms)).all()
            assert len(combination.numbers) > 1
        number += len(found)
    assert number > 50


def test_what_is_refused_stays_refused():
    random = np.random.default_rng(1)
    refused = 0
    for _ in range(12):
        *queries, more = [*workload(random, 5), query("a in (0, 1, 2)", "next")]
        longer, dense = [], matrix_of([*queries, more])[1]
        for place, own in enumerate(queries, 1):
            longer.append(own)
            if gpupif.audit(longer, next=more).allowed is False:
                # Until the answer follows from the others and says nothing new.
                assert not follows(dense[-1], dense[:place])
                for end in range(place + 1, len(queries) + 1):
                    allowed = gpupif.audit(queries[:end], next=more).allowed
                    assert allowed is follows(dense[-1], dense[:end])
                    refused += not allowed
                break
        given_away = [gpupif.audit(queries[:end]).disclosed > 0 for end in range(1, len(queries) + 1)]
        assert given_away == sorted(given_away)
    assert refused > 5


T, F, CT = query("sex = 'm'", "T"), query("sex = 'f'", "f"), query("grade = 9 or sex = 'm'", "CT")
OTHERS = [query(f"{name} = {value}") for name, values in (("region", 25), ("team", 20)) for value in range(values)]


@pytest.mark.parametrize("log", [[T], [T, F], [F, T, query("region = 1"), query("not sex = 'm'")], [T, *OTHERS]])
def test_a_tracker_is_refused_whatever_else_was_asked(log):
    asked = gpupif.audit(log, next=CT)
    assert asked.allowed is False
    assert "CT − T" in set(asked.findings["by"])
    # The group that it isolates was asked for, or the tracker itself: it adds nothing.
    group = query("grade = 9 and not sex = 'm'", "group")
    assert gpupif.audit([*log, group], next=CT).allowed is True
    assert gpupif.audit([*log, CT], next=group | {"name": "again"}).allowed is True
    assert gpupif.audit([*log, CT, group]).disclosed >= 1


@pytest.mark.parametrize(
    "conditions",
    [
        ["sex = 'm'", "sex = 'f'", *(own["where"] for own in OTHERS)],
        ["sex = 'm'", "not sex = 'm'", "sex is missing or not sex is missing"],
        ["age < 30", "age >= 30 and age < 60", "age >= 60", "region = 1", "not age is missing"],
    ],
)
def test_disjoint_queries_and_their_totals_pass(conditions):
    queries = [query(where) for where in conditions]
    assert gpupif.audit(queries).disclosed == 0
    assert gpupif.audit(queries[:-1], next=queries[-1]).allowed is True


def test_queries_that_overlap_in_too_many_ways_are_refused(monkeypatch):
    monkeypatch.setattr("gpupif.release.isolated_groups.MOST_STEPS", 3)
    queries = [query(f"a in ({place}, {place + 1}, {place + 3})") for place in range(12)]
    with pytest.raises(gpupif.InputError, match="overlap in so many ways"):
        gpupif.audit(queries)
    # What is found until then is a finding.
    found = gpupif.audit([*queries, T, CT])
    assert found.findings["by"].tolist() == ["CT − T"]
    assert gpupif.audit([*queries, T], next=CT).allowed is False
    with pytest.raises(gpupif.InputError, match="overlap in so many ways"):
        gpupif.audit([*queries, T, CT], next=F)
