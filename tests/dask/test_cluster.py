"""Scoring on a cluster: real worker processes, P2P shuffles, workers that are killed, the command line."""

from __future__ import annotations

import json
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import dask
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, KilledWorker, LocalCluster

import gpupif
from gpupif.cli.cluster import score_on_cluster
from gpupif.cli.main import main
from gpupif.cli.options import Place
from gpupif.dask import client as connect
from gpupif.dask import read as files
from gpupif.dask import watch
from gpupif.scoring.arguments import Arguments
from gpupif.utils.progress import Reporter
from tests.helpers.checkout import ROOT
from tests.helpers.dask_frames import assert_same

ROWS, PARTITIONS = 4_000, 12
WORKERS = 3


@pytest.fixture(scope="module")
def running():
    """A cluster whose nannies replace workers that die."""
    silent = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with (
        dask.config.set(connect.PATIENT),
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, **silent) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def client(running):
    """With all its workers, or the test fails."""
    running.wait_for_workers(WORKERS, timeout=60)
    return running


@pytest.fixture
def threads():
    """A cluster in this process, with one worker."""
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A census as Parquet files, a partition each."""
    folder = tmp_path_factory.mktemp("census")
    frame = gpupif.datasets.census(ROWS * PARTITIONS)
    for number in range(PARTITIONS):
        frame.iloc[number * ROWS : (number + 1) * ROWS].to_parquet(folder / f"{number:02}.parquet")
    return folder


@pytest.fixture(scope="module")
def expected():
    with gpupif.config(device="cpu"):
        return gpupif.score(gpupif.datasets.census(ROWS * PARTITIONS), ["cig", "wcig", "csf"])


def test_the_bits_of_the_table_in_memory(client, folder, expected):
    scores = gpupif.score(dd.read_parquet(folder), ["cig", "wcig", "csf"])
    graph = scores.frame().__dask_graph__()
    assert sum("barrier" in str(key) for key in graph) == 2
    kept = scores.persist()
    assert_same(kept, expected)
    assert dict(kept.weights.compute()) == expected.weights


def test_a_table_in_the_memory_of_the_workers(client):
    frame = gpupif.datasets.census(900)
    with gpupif.config(device="cpu"):
        expected = gpupif.score(frame)
    scores = gpupif.score(dd.from_pandas(frame, npartitions=3).persist())
    assert_same(scores, expected)
    assert dict(scores.priors.compute()) == dict(expected.priors)


def test_information_and_special_uniques(client):
    """Computed at once, what is found on the way sent between workers; the same bits as in memory."""
    frame = gpupif.datasets.census(900)
    lazy = dd.from_pandas(frame, npartitions=3)
    assert gpupif.dual_total_correlation(lazy) == gpupif.dual_total_correlation(frame)
    found, expected = gpupif.toxic_pairs(lazy), gpupif.toxic_pairs(frame)
    pd.testing.assert_frame_equal(found.pairs, expected.pairs, check_exact=True)
    pd.testing.assert_frame_equal(found.values, expected.values, check_exact=True)
    special, expected = gpupif.suda(lazy), gpupif.suda(frame)
    pd.testing.assert_frame_equal(special.msus.compute(), expected.msus, check_exact=True)
    assert special.summary().sizes.equals(expected.summary().sizes)


@pytest.fixture
def gathered(monkeypatch):
    """Bytes of each thing that comes to the client."""
    sizes = []
    original = Client._gather_remote

    async def gather(self, *arguments):
        answer = await original(self, *arguments)
        sizes.append(sum(len(pickle.dumps(value)) for value in answer["data"].values()))
        return answer

    monkeypatch.setattr(Client, "_gather_remote", gather)
    return sizes


def test_nothing_comes_to_the_client(client, folder, tmp_path, gathered):
    gpupif.score(dd.read_parquet(folder)).to_parquet(tmp_path / "scores", write_index=False)
    assert gathered
    assert sum(gathered) < 10_000
    assert pq.read_table(tmp_path / "scores").num_rows == ROWS * PARTITIONS


@pytest.mark.parametrize("sensitive", [["education", "occupation"], None])
def test_disclosure_risk(client, folder, gathered, sensitive):
    """The numbers of the table in memory; only they come to the client."""
    asked = (["region", "age"], sensitive)
    with gpupif.config(device="cpu"):
        found = gpupif.risk(dd.read_parquet(folder), *asked).to_dict()
    with gpupif.config(device="cpu"):
        expected = gpupif.risk(gpupif.datasets.census(ROWS * PARTITIONS), *asked).to_dict()
    assert {**found, "seconds": 0} == {**expected, "seconds": 0}
    assert gathered
    assert sum(gathered) < 20_000


def test_errors_and_warnings_reach_the_client(client):
    frame = pd.DataFrame({"id": range(100), "b": [0, None] * 50})
    scores = gpupif.score(dd.from_pandas(frame, npartitions=3), missing="error")
    with pytest.raises(gpupif.InputError, match=r"column 'b': 50 missing values, the first in row 1 \(from 0\)"):
        scores.cig.compute()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        gpupif.score(dd.from_pandas(frame, npartitions=3)).cig.compute()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not seen:
            time.sleep(0.05)
    assert [warning.category for warning in seen] == [gpupif.NearlyUniqueWarning]


def finished(prefix, dask_scheduler):
    """How many tasks whose names begin so are done."""
    return sum(
        str(key[0] if isinstance(key, tuple) else key).startswith(prefix)
        for key, task in dask_scheduler.tasks.items()
        if task.state == "memory"
    )


@pytest.fixture(scope="module")
def large_folder(tmp_path_factory):
    """Large enough that there is time to kill a worker."""
    folder = tmp_path_factory.mktemp("large")
    for number in range(12):
        gpupif.datasets.census(12_000, seed=number).to_parquet(folder / f"{number:02}.parquet")
    return folder


@pytest.fixture(scope="module")
def large_expected(large_folder):
    with gpupif.config(device="cpu"):
        return gpupif.score(pd.read_parquet(large_folder), ["cig", "wcig"])


def kill_at(client, moment, table):
    """A run one of whose workers is killed when the first task that is called so is done; tried again where the run
    was faster than the kill.
    """
    for _ in range(5):
        client.wait_for_workers(WORKERS, timeout=60)
        victim = list(client.run(os.getpid).values())[1]
        future = client.compute(gpupif.score(dd.read_parquet(table), ["cig", "wcig"]).frame())
        while not client.run_on_scheduler(finished, moment) and not future.done():
            time.sleep(0.002)
        os.kill(victim, signal.SIGKILL)
        if not future.done():
            return victim, future
    raise AssertionError("all runs were over before a worker could be killed")


@pytest.mark.parametrize("moment", ["gpupif-encode", "shuffle-transfer", "gpupif-score", "gpupif-leave"])
def test_a_killed_worker_changes_no_number(client, large_folder, large_expected, moment):
    """All numbers, and right; or what Dask says when it gives up. Neither within a minute is a failure."""
    victim, future = kill_at(client, moment, large_folder)
    try:
        scores = future.result(timeout=60)
    except KilledWorker:
        return
    except RuntimeError as error:
        assert re.search("P2P|shuffle", str(error))  # noqa: PT017
        return
    assert victim not in client.run(os.getpid).values()
    for measure in ("cig", "wcig"):
        wanted = large_expected[measure]
        found = scores[[f"{measure}_{name}" for name in wanted]]
        assert found.to_numpy().tobytes() == wanted.to_numpy().tobytes()


class TestAwaitResult:
    @pytest.fixture
    def impatient(self, monkeypatch):
        monkeypatch.setattr(watch, "STILL_SECONDS", 0.5)
        monkeypatch.setattr(watch, "LOOK_SECONDS", 0.1)
        monkeypatch.setattr(watch, "IDLE_CPU", 1e9)

    def test_a_cluster_that_lost_its_workers(self, impatient, threads, folder, tmp_path):
        threads.cluster.scale(0)
        while threads.nthreads():
            time.sleep(0.05)
        with pytest.raises(gpupif.DeviceError, match=r"has no workers left: for 0.5 s no task .* Nothing was written"):
            on_cluster(folder, tmp_path / "out", scheduler=threads.scheduler.address)
        assert list(tmp_path.iterdir()) == []

    def test_a_task_that_never_ends(self, impatient, threads):
        future = threads.submit(time.sleep, 2)
        with pytest.raises(gpupif.DeviceError, match="has 1 worker and gets nowhere"):
            watch.await_result(threads, future)

    def test_a_task_that_takes_its_time(self, impatient, threads, monkeypatch):
        monkeypatch.setattr(watch, "IDLE_CPU", -1)
        future = threads.submit(lambda: time.sleep(2.5) or 7)
        while not watch._state(threads)[1] and not future.done():
            time.sleep(0.05)
        assert not future.done()
        assert watch.await_result(threads, future) == 7

    def test_a_lost_scheduler(self, threads):
        future = threads.submit(time.sleep, 1.5)
        threading.Timer(0.2, threads.cluster.close).start()
        with pytest.raises(gpupif.DeviceError, match="the scheduler of the cluster was lost"):
            watch.await_result(threads, future)


def on_cluster(table, output, scheduler=None, workers=None, overwrite=False, elsewhere=(), **asked):
    asked = Arguments.of(asked.pop("measures", ("cig", "csf")), **asked)
    return score_on_cluster(table, output, Place(scheduler, workers), overwrite, asked, dict(elsewhere))


def at(client):
    """The options that name a cluster."""
    return "--scheduler", client.scheduler.address


def without_times(text):
    """What is printed but for the seconds of each stage."""
    return re.sub(r", [a-z ]+ \d+\.\d+ s\b", "", text)


class TestCommandLine:
    def test_workers_started_for_it(self, folder, expected, tmp_path, monkeypatch, capsys):
        command = [sys.executable, "-m", "gpupif", "score", str(folder), "-o", str(tmp_path / "out"), "--workers", "2"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "48,000 rows x 10 columns (cig, csf, wcig) scored by 2 workers in 12 partitions" in done.stdout
        written = pd.read_parquet(tmp_path / "out")
        for measure in expected.measures:
            wanted = expected[measure]
            found = written[[f"{measure}_{name}" for name in wanted]]
            assert found.to_numpy().tobytes() == wanted.to_numpy().tobytes()
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        monkeypatch.setattr(sys, "argv", ["gpupif", *command[3:]])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert error.startswith("gpupif: error: ")
        assert "exists already. Use overwrite (--overwrite)" in error

    def test_progress(self, client, large_folder, tmp_path, monkeypatch):
        """Tasks that are done, of all, and what is at work; nothing where the command line is to be quiet."""
        told, visible = [], []

        class Recorder(Reporter):
            def __enter__(self):
                visible.append(self.visible)
                return self

            def __exit__(self, *_):
                """Nothing to stop."""

        for method in ("stage", "expect", "advance", "rename"):
            monkeypatch.setattr(Recorder, method, lambda self, *told_now, name=method: told.append((name, *told_now)))
        monkeypatch.setattr(connect, "Reporter", Recorder)
        monkeypatch.setattr(watch, "SHOW_SECONDS", 0.02)
        place = {"scheduler": client.scheduler.address}
        with gpupif.config(progress=True):
            on_cluster(large_folder, tmp_path / "out", **place)
        assert told[:2] == [("stage", "start", None, "workers"), ("stage", "compute", None, "tasks")]
        done = sum(amount for name, amount, *_ in told if name == "advance")
        total = [amount for name, amount, *_ in told if name == "expect"]
        assert total == sorted(total)
        assert 100 < done <= total[-1]
        assert {what for name, what, *_ in told if name == "rename"} & {"encode", "shuffle", "score", "write"}
        told.clear()
        with gpupif.config(progress=False):
            on_cluster(large_folder, tmp_path / "other", **place)
        assert visible == [True, False]
        assert [name for name, *_ in told] == ["stage", "stage"]

    def test_an_error_of_a_worker_is_one_line(self, tmp_path):
        pd.DataFrame({"a": [1, 2] * 20, "b": [0, None] * 20}).to_parquet(tmp_path / "in.parquet", row_group_size=20)
        command = ["score", str(tmp_path / "in.parquet"), "-o", str(tmp_path / "out"), "--missing", "error"]
        command = [sys.executable, "-m", "gpupif", *command, "--workers", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith("gpupif: error: column 'b': 20 missing values")

    def test_only_this_process_hears_of_ctrl_c(self):
        """A terminal sends it to all processes; also to a worker that came in place of another."""
        with connect.cluster(None, 1) as client:
            (first,) = client.run(os.getpid).values()
            os.kill(first, signal.SIGINT)
            assert client.submit(os.getpid, pure=False).result(timeout=60) == first
            os.kill(first, signal.SIGKILL)
            second = client.submit(os.getpid, pure=False).result(timeout=60)
            os.kill(second, signal.SIGINT)
            assert client.submit(os.getpid, pure=False).result(timeout=60) == second != first
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())

    def test_the_only_worker_killed(self):
        """It comes back, even later than Dask waits by default before it strikes a worker off."""
        with (
            dask.config.set({"distributed.deploy.lost-worker-timeout": "10 ms"}),
            connect.cluster(None, 1) as client,
        ):
            (victim,) = client.run(os.getpid).values()
            os.kill(victim, signal.SIGKILL)
            assert client.submit(os.getpid).result(timeout=60) != victim
            assert len(client.cluster.workers) == 1

    def test_workers_that_do_not_start(self, monkeypatch):
        def fails(**options):
            raise RuntimeError("Nanny failed to start.")

        monkeypatch.setattr("distributed.LocalCluster", fails)
        with (
            pytest.raises(
                gpupif.DeviceError, match=r"--workers 3: they could not be started \(Nanny failed to start\)"
            ),
            connect.cluster(None, 3),
        ):
            pass

    def test_a_cluster_that_runs(self, client, tmp_path):
        """Row groups become partitions, folders' names columns; types are Arrow's, exact where values are missing."""
        rows = pa.table({"a": [2**60, None, 2**60 + 1, 5] * 5, "b": list("xyxz") * 5})
        for name in ("sex=F", "sex=M"):
            (tmp_path / "in" / name).mkdir(parents=True)
            pq.write_table(rows, tmp_path / "in" / name / "part.parquet", row_group_size=7)
        facts = on_cluster(tmp_path / "in", tmp_path / "out", scheduler=client.scheduler.address, known=["b", "sex"])
        assert (facts["rows"], facts["workers"], facts["columns"]) == (40, WORKERS, ["a", "b", "sex"])
        with gpupif.config(device="cpu"):
            wanted = gpupif.score(tmp_path / "in", known=["b", "sex"]).to_arrow()
        assert pq.read_table(tmp_path / "out").equals(wanted)
        columns = {"columns": ["b"], "known": ["a"]}
        on_cluster(tmp_path / "in", tmp_path / "out", scheduler=client.scheduler.address, overwrite=True, **columns)
        with gpupif.config(device="cpu"):
            wanted = gpupif.score(tmp_path / "in", columns=["b"], known=["a"]).to_arrow()
        assert pq.read_table(tmp_path / "out").equals(wanted)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]

    def test_any_few_columns_known(self, threads, tmp_path):
        frame = gpupif.datasets.census(200, columns=5)
        frame.to_parquet(tmp_path / "in.parquet", row_group_size=60)
        known = gpupif.AnyKnown(1, among=["region", "sex", "age"], subsets=1)
        asked = {"columns": ["age", "sex"], "known": known}
        facts = on_cluster(tmp_path / "in.parquet", tmp_path / "out", threads.scheduler.address, **asked)
        assert facts["measures"] == ["cig_worst", "cig_mean", "csf_worst", "csf_mean"]
        expected = gpupif.score(frame, **asked)
        assert facts["attackers"] == repr(expected.subsets)
        assert facts["known_any"] == expected.subsets.to_dict()
        assert facts["known_any"]["sampled"]
        expected = expected.to_arrow().to_pandas()
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out"), expected, check_exact=True)
        asked["known"] = gpupif.AnyKnown(1, among=["regio"])
        with pytest.raises(gpupif.InputError, match="among: no column 'regio'"):
            on_cluster(tmp_path / "in.parquet", tmp_path / "no", threads.scheduler.address, **asked)

    def test_a_population(self, client, tmp_path):
        people = gpupif.datasets.census(900, columns=4)
        people.iloc[300:500].to_parquet(tmp_path / "in.parquet", index=False)
        people.to_parquet(tmp_path / "people.parquet", row_group_size=400)
        asked = {"population": tmp_path / "people.parquet"}
        facts = on_cluster(tmp_path / "in.parquet", tmp_path / "out", scheduler=client.scheduler.address, **asked)
        assert facts["measures"] == ["cig", "csf", "population_size"]
        with gpupif.config(device="cpu"):
            wanted = gpupif.score(tmp_path / "in.parquet", **asked).to_arrow()
        assert pq.read_table(tmp_path / "out").equals(wanted)
        with pytest.raises(gpupif.InputError, match="population: it lacks"):
            on_cluster(
                tmp_path / "people.parquet",
                tmp_path / "other",
                scheduler=client.scheduler.address,
                population=tmp_path / "in.parquet",
            )
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out", "people.parquet"]

    @pytest.mark.parametrize(
        "command",
        [
            "risk {in} --quasi-identifiers age,region --sensitive sex --population {people} --sampling-fraction 0.5",
            "toxic {in} --size 2 --columns age,region,sex --top 5",
            "suda {in} --max-size 2 --columns age,region,sex --sampling-fraction 0.1 -o {out}",
        ],
    )
    def test_commands_print_what_they_do_without(self, client, tmp_path, run, command):
        people = gpupif.datasets.census(900, columns=4)
        people.iloc[300:500].to_parquet(tmp_path / "in.parquet")
        people.to_parquet(tmp_path / "people.parquet", row_group_size=400)
        places = {name: tmp_path / f"{name}.parquet" for name in ("in", "people", "out", "there")}
        here = command.format(**places).split()
        there = [*command.format(**{**places, "out": places["there"]}).split(), *at(client)]
        shown = [run(*options, "--json") for options in (here, there)]
        assert [(one.code, one.err) for one in shown] == [(0, "")] * 2
        ours, theirs = (json.loads(one.out) for one in shown)
        assert theirs | {"seconds": 0, "output": 0} == ours | {"seconds": 0, "output": 0}
        printed = [run(*options, *(["--overwrite"] * ("-o" in options))).out for options in (here, there)]
        assert without_times(printed[0]) == without_times(printed[1]).replace("there.parquet", "out.parquet")
        if "-o" in here:
            assert pq.read_table(places["there"]).equals(pq.read_table(places["out"]))

    def test_commands_refuse_what_is_not_for_a_cluster(self, folder, tmp_path, run, monkeypatch):
        monkeypatch.setattr(connect, "CONNECT_SECONDS", 0.2)
        (tmp_path / "t.csv").write_text("a,b\n1,2\n")
        risk = ("risk", folder, "--quasi-identifiers")
        for options, fragment in [
            (
                (*risk, "age", "--scheduler", "tcp://127.0.0.1:1"),
                "--scheduler tcp://127.0.0.1:1: no cluster can be reac",
            ),
            ((*risk, "age", "--scheduler", "x", "--workers", "2"), "--workers: expected it or --scheduler"),
            ((*risk, "age", "--workers", "0"), "--workers: expected at least 1, got 0"),
            ((*risk, "age", "--workers", "1", "--memory-limit", "2GiB"), "--memory-limit: is not for a cluster, which"),
            ((*risk, "ag", "--workers", "1"), "--quasi-identifiers: no column 'ag' in the table. Did you mean 'age'?"),
            (("toxic", folder, "--columns", "ag", "--workers", "1"), "--columns: no column 'ag' in the table. Did you"),
            (("toxic", tmp_path / "t.csv", "--workers", "1"), "a cluster reads Parquet files, folders and patterns"),
            (
                ("suda", folder, "--workers", "1", "--temp", tmp_path),
                "--temp: is not for a cluster, which reads Parquet",
            ),
            (("suda", folder, "--workers", "1", "--sep", ";"), "--sep: is not for a cluster"),
        ]:
            ended = run(*options)
            assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1), ended.err
            assert fragment in ended.err

    def test_an_error_of_a_command_and_progress(self, client, folder, run, monkeypatch):
        told = []
        monkeypatch.setattr(Reporter, "stage", lambda self, *stage: self.visible is not False and told.append(stage))
        real = connect.Reporter
        monkeypatch.setattr(connect, "Reporter", lambda: real(True))
        ended = run("risk", folder, "--quasi-identifiers", "age", "--l", "3", "--sensitive", "sex", *at(client))
        assert (ended.code, ended.out) == (2, "")
        assert "gpupif: error: --l: expected at most 2, the different values of column 'sex'; got 3." in ended.err
        assert told == [("start", None, "workers"), ("compute", None, "tasks")]

    def test_small_row_groups_are_read_together(self, monkeypatch):
        monkeypatch.setattr(files, "PARTITION_ROWS", 10)
        assert list(files._grouped([4, 5, 2, 30, 1, 1])) == [(0, 1), (2,), (3,), (4, 5)]

    def test_a_failed_run_leaves_nothing(self, client, folder, tmp_path):
        priors = {"sex": {"nobody": 1.0}}
        with pytest.raises(gpupif.PriorError, match="'sex'"):
            on_cluster(folder, tmp_path / "out", scheduler=client.scheduler.address, priors=priors)
        assert list(tmp_path.iterdir()) == []

    def test_errors_before_any_work(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr(connect, "CONNECT_SECONDS", 0.2)
        (tmp_path / "t.csv").write_text("a,b\n1,2\n")
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "letters.txt").touch()
        out = tmp_path / "out"
        for arguments, more, error, message in [
            ((folder, out), {"scheduler": "tcp://127.0.0.1:1"}, gpupif.DeviceError, "no cluster can be reached"),
            ((folder, out), {"scheduler": "x", "workers": 2}, gpupif.InputError, "got both"),
            ((folder, out), {"workers": 0}, gpupif.InputError, "at least 1"),
            ((folder, out), {"workers": 1, "elsewhere": {"keep_input": True}}, gpupif.InputError, "--keep-input"),
            ((folder, out), {"workers": 1, "elsewhere": {"sep": ";"}}, gpupif.InputError, "--sep"),
            ((folder, out), {"workers": 1, "elsewhere": {"rows_per_file": 5}}, gpupif.InputError, "--rows-per-file"),
            ((folder, out), {"workers": 1, "measures": ["gig"]}, gpupif.InputError, "gig"),
            ((tmp_path / "t.csv", out), {"workers": 1}, gpupif.InputError, "Convert it"),
            ((tmp_path / "no.parquet", out), {"workers": 1}, gpupif.TableReadError, "no such file"),
            ((folder, folder / "out"), {"workers": 1}, gpupif.OutputError, "inside it or around it"),
            ((folder, tmp_path / "no" / "out"), {"workers": 1}, gpupif.OutputError, "there is no folder"),
            ((folder, tmp_path / "full"), {"workers": 1}, gpupif.OutputError, "exists already"),
            ((folder, tmp_path / "full"), {"workers": 1, "overwrite": True}, gpupif.OutputError, "would be lost"),
            ((folder, out), {"workers": 1, "population": tmp_path / "no"}, gpupif.TableReadError, "no such file"),
        ]:
            with pytest.raises(error, match=message):
                on_cluster(*arguments, **more)
        assert not out.exists()

    def test_without_dask_the_error_names_the_extra(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr(connect, "find_spec", lambda name: None)
        with pytest.raises(gpupif.DeviceError, match=r"pip install 'gpupif\[dask\]'"):
            on_cluster(folder, tmp_path / "out", workers=1)


def test_the_benchmark_runs(tmp_path, monkeypatch):
    """Small: its figures mean nothing, but that the scores agree does."""
    from benchmarks import cluster

    def run_job(job):
        """In a process of its own only where there are workers."""
        return in_process(job) if job["workers"] else cluster.run_in_memory(job)

    in_process = cluster.run_job
    monkeypatch.setattr(cluster, "run_job", run_job)
    arguments = ["--rows", "4000", "--partition-rows", "1000", "--workers", "1", "--runs", "1", "--no-plot"]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["cluster", *arguments, "--out", str(tmp_path)])
    cluster.main()
    document = json.loads((tmp_path / "cluster.json").read_text())
    assert document["same_bits"]
    assert [result["workers"] for result in document["results"]] == [0, 1]
    assert document["results"][1]["shuffled_bytes"] > 4000 * 10 * 8
