"""The prediction of the device's memory: never below the measured memory, and the tables that fit on each card."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.cli.info import describe
from gpupif.datasets import census
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.engines.cuda import rows as cuda_rows
from gpupif.engines.cuda import scorer as cuda_blocks
from gpupif.engines.cuda.engine import SHARE, TYPICAL_ROW_BYTES, CudaEngine
from gpupif.engines.cuda.grouping import GROUPINGS, choose_grouping
from gpupif.engines.memory import SUM_WORDS, all_values, fixed_bytes, row_bytes, score_bytes, scores_on, table_bytes
from gpupif.gpu.status import CudaStatus, Gpu
from gpupif.kernels.cuda.cohorts import PARTS
from gpupif.measures import MEASURES
from tests.helpers.gpu.measured import Measured
from tests.helpers.gpu.on_device import HASHED, assert_same_scores
from tests.helpers.gpu.without_gpu import DeviceLibrary, need_stand_in

need_stand_in()

pytestmark = pytest.mark.gpu

ROWS = 50_000
# Bytes a row for what Python takes meanwhile, which is the same for any number of rows.
SLACK = 2
# What is predicted is at most so many times what is measured.
COARSE = 1.5


def job_of(frame, measures, **asked):
    """Return the job of a table that `score` would make."""
    jobs = []

    class Spy(CpuEngine):
        def score(self, job, progress):
            jobs.append(job)
            return super().score(job, progress)

    score(Spy(), frame, measures, **asked)
    return jobs[0]


def score(engine, frame, measures=tuple(MEASURES), **asked):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda _: engine)
        return gpupif.score(frame, list(measures), **asked)


def different(columns):
    """Return a table of distinct rows, of which hardly any two agree on all columns except one."""
    random = np.random.default_rng(0)
    return pd.DataFrame({f"c{column}": random.integers(0, 200, ROWS) for column in range(columns)})


# Measures of no statistic that looks ahead, of some that do, and of one that needs values in order.
ASKED = {"few": ["cig", "csf"], "ahead": ["cig", "hellinger", "renyi_2", "distinct_values"], "walks": ["cig", "emd"]}


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(("columns", "scored_columns"), [(6, 3), (25, 2)])
@pytest.mark.parametrize("inside", [True, False])
def test_each_stage_keeps_within_its_planned_memory(columns, scored_columns, inside, weights):
    frame = different(columns)
    names = list(frame.columns)
    asked = {"columns": names[:scored_columns], "known": names if inside else names[scored_columns:]}
    hold_to_plan(job_of(frame, ASKED["few"], **asked), weights)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("measures", ASKED.values(), ids=ASKED)
def test_every_measure_keeps_within_the_planned_memory(measures, grouping):
    frame = different(6)
    hold_to_plan(job_of(frame, measures, columns=["c0", "c1"], known=list(frame.columns)), False, grouping)


def hold_to_plan(job, weights, grouping="rotation"):
    """Score a job, and compare each stage's memory with the prediction."""
    if weights:
        multiplicities = np.random.default_rng(1).integers(2, 50, ROWS)
        counts = [np.bincount(codes, multiplicities).astype(np.int64) for codes in job.codes]
        job = replace(job, multiplicities=multiplicities, counts=counts)
    # What is compiled and loaded the first time is no array.
    CudaEngine(grouping=grouping).score(job, Silent())
    library, chosen = Measured(), choose_grouping(grouping, job).name
    with library.measuring():
        CudaEngine(libraries=[library], grouping=grouping).score(job, Silent())
    rest = score_bytes(job) + fixed_bytes(all_values(job))
    taken = {name: (most - rest) / ROWS for name, most in library.most.items()}
    if chosen == "cudf":
        # What stands in for cuDF takes other memory than cuDF does.
        del taken["collapse"], taken["group"]
    predicted = row_bytes(job)
    assert {name: most for name, most in taken.items() if most > predicted + SLACK} == {}
    assert predicted < COARSE * max(taken.values())


def test_blocks_keep_within_their_planned_memory(monkeypatch):
    job = job_of(different(6), ["cig", "csf"])
    CudaEngine(share=0).score(replace(job, codes=[codes[:9] for codes in job.codes]), Silent())
    library, real, taken = Measured(memory=126 * ROWS), cuda_blocks._score_rows, []

    def measured(given, run, blocks, scored_columns, out, first, last):
        given.note()
        given.peak, before = 0, tracemalloc.get_traced_memory()[0]
        tally = real(given, run, blocks, scored_columns, out, first, last)
        given.note()
        # The tally is the host's.
        before += sum(array.nbytes for array in tally)
        taken.append((given.peak - before, int(blocks.offsets[last] - blocks.offsets[first])))
        return tally

    monkeypatch.setattr(cuda_blocks, "_score_rows", measured)
    with library.measuring():
        result = CudaEngine(libraries=[library]).score(job, Silent())
    assert result.through_host
    assert sum(rows for _, rows in taken) >= ROWS
    for most, rows in taken:
        assert (
            most
            <= rows * row_bytes(job, multiplicities=True, whole=False, to_host=False)
            + fixed_bytes(max(map(len, job.counts)))
            + ROWS * SLACK
        )


class Silent:
    """Progress that nobody sees."""

    def advance(self, cells):
        pass


def large(rows, scores_on):
    """Return a job on 10 columns like a census's, with CIG and CSF."""
    few = job_of(census(200), ["cig", "csf"])
    codes = [np.broadcast_to(np.uint8(0), rows)] * 10
    counts = [np.full(cardinality, rows // cardinality) for cardinality in (50, 101, 2, 6, 11, 29, 45, 8, 12, 5)]
    return replace(few, codes=codes, counts=counts, scores_on=scores_on)


def test_a_large_table_takes_the_typical_bytes_of_a_row():
    assert row_bytes(large(1000, "host")) == TYPICAL_ROW_BYTES
    assert table_bytes(large(1000, "host")) - table_bytes(large(500, "host")) == 500 * TYPICAL_ROW_BYTES


def test_the_words_of_a_sum_are_as_many_as_in_the_kernels():
    assert SUM_WORDS == PARTS


@pytest.mark.parametrize(
    ("rows", "free", "host", "either", "device"),
    [
        # An H200: 140.4 GiB, less 1 GiB for the context.
        (300_000_000, 139.4, "host", "device", "device"),
        (440_000_000, 139.4, "host", "device", "device"),
        (520_000_000, 139.4, "host", "host", None),
        (1_000_000_000, 139.4, "host", "host", None),
        (1_300_000_000, 139.4, None, None, None),
        # An H100 of 80 GB.
        (100_000_000, 78, "host", "device", "device"),
        (300_000_000, 78, "host", "host", None),
    ],
)
def test_tables_that_fit_the_card_are_scored_as_a_whole(rows, free, host, either, device):
    memory = int(SHARE * free * 2**30)
    assert {there: scores_on(large(rows, there), memory) for there in ("host", "either", "device")} == {
        "host": host,
        "either": either,
        "device": device,
    }


@pytest.mark.parametrize("limit", [10, 2**31 - 1])
def test_tables_of_more_rows_than_4_bytes_number_are_scored(monkeypatch, limit):
    monkeypatch.setattr(cuda_rows, "NARROW_ROWS", limit)
    frame = census(60, columns=4)
    for grouping, measures in {"rotation": list(MEASURES), "cudf": HASHED}.items():
        with gpupif.config(device="cpu"):
            expected = gpupif.score(frame, measures)
        assert_same_scores(score(CudaEngine(grouping=grouping), frame, measures), expected)


class Narrow(DeviceLibrary):
    """A device that runs out of memory where a whole table is packed."""

    def launch(self, kernel, size, *arguments):
        if size >= 50:
            raise MemoryError
        super().launch(kernel, size, *arguments)


def test_a_table_that_goes_through_the_host_says_so_and_why():
    frame = census(50, columns=4)
    whole = score(CudaEngine(), frame)
    assert whole.through_host == whole.summary().through_host == ""
    assert "through the host" not in str(whole.summary())
    small = score(CudaEngine(libraries=[DeviceLibrary(memory=15_000)]), frame)
    said = (
        r"through the host, in \d+ parts?: as a whole it takes about 0\.0 GiB of the GPU's memory, 0\.0 GiB are planned"
    )
    assert re.match(said, small.through_host)
    assert f"Scored {small.through_host}" in " ".join(str(small.summary()).split())
    assert small.summary().to_dict()["through_host"] == small.through_host
    several = score(
        CudaEngine(libraries=[DeviceLibrary(memory=15_000)]),
        frame,
        attackers={"all": list(frame.columns), "two": list(frame.columns)[:2]},
    )
    assert "Scored through the host, in " in str(several.summary())
    full = score(CudaEngine(libraries=[Narrow()]), frame)
    assert re.match(
        r"through the host, in \d+ parts: as a whole .* GiB of the GPU's memory, which ran out", full.through_host
    )
    missing = frame.astype("object").where(frame != frame.iloc[0, 0])
    apart = score(CudaEngine(libraries=[DeviceLibrary(memory=100_000)]), missing, missing="wildcard")
    assert apart.through_host == ""


def test_scores_say_that_the_host_found_the_distinct_rows():
    frame = census(12, columns=3)
    assert score(CudaEngine(), frame, known=1).through_host == ""
    scores = score(CudaEngine(share=0), frame, known=1)
    said = "through the host, which found distinct rows: as a whole it takes about 0.0 GiB of the GPU's memory, 0.0 GiB"
    assert scores.through_host.startswith(said)
    assert scores.summary().mean.through_host == scores.summary().through_host == scores.through_host


def test_info_names_the_largest_table_that_fits_a_gpu(monkeypatch):
    gpu = Gpu("Card", (9, 0))
    monkeypatch.setattr("gpupif.cli.info.cuda_status", lambda: CudaStatus([gpu], [0]))
    monkeypatch.setattr(DeviceLibrary, "free_bytes", lambda self: int(139.4 * 2**30))
    facts = describe()
    assert facts["GPU memory"] == (
        "GPU 0: 139.4 GiB free, for up to about 1,086 million rows x 10 columns (CIG and CSF) as a whole; "
        "larger tables are scored in parts, through the host's memory"
    )
