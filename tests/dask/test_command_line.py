"""The command line on a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import dask
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.cli.main import main
from gpupif.dask import cluster_client as connect
from gpupif.dask import cluster_progress as watch
from gpupif.dask import parquet_partitions as files
from gpupif.utils.progress import Reporter
from tests.helpers.clusters import WORKERS, at, on_cluster, without_times

pytestmark = [pytest.mark.dask, pytest.mark.subprocess, pytest.mark.slow, pytest.mark.xdist_group("cluster")]


class TestCommandLine:
    def test_the_command_starts_workers_and_writes_scores(self, folder, expected, tmp_path, monkeypatch, capsys):
        command = [sys.executable, "-m", "gpupif", "score", str(folder), "-o", str(tmp_path / "out"), "--workers", "2"]
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(temporary)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=temporary, env=environment)
        assert done.returncode == 0, done.stderr
        assert list(temporary.iterdir()) == []
        temporary.rmdir()
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
        assert "exists already. Use --overwrite" in error

    def test_progress_counts_the_tasks_that_are_done(self, client, large_folder, tmp_path, monkeypatch):
        """The bar shows the tasks done, all tasks and the current stage; a quiet command shows none."""
        told, visible = [], []

        class Recorder(Reporter):
            def __enter__(self):
                visible.append(self.visible)
                return self

            def __exit__(self, *_):
                """Stop nothing."""

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

    def test_ctrl_c_ends_no_worker(self):
        """A terminal sends Ctrl-C to all processes, also to a worker that replaced another."""
        with connect.cluster(None, 1) as client:
            (first,) = client.run(os.getpid).values()
            os.kill(first, signal.SIGINT)
            assert client.submit(os.getpid, pure=False).result(timeout=60) == first
            os.kill(first, signal.SIGKILL)
            second = client.submit(os.getpid, pure=False).result(timeout=60)
            os.kill(second, signal.SIGINT)
            assert client.submit(os.getpid, pure=False).result(timeout=60) == second != first
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())

    def test_a_killed_worker_comes_back(self):
        """The worker comes back even later than Dask waits by default before it drops a worker."""
        with (
            dask.config.set({"distributed.deploy.lost-worker-timeout": "10 ms"}),
            connect.cluster(None, 1) as client,
        ):
            (victim,) = client.run(os.getpid).values()
            os.kill(victim, signal.SIGKILL)
            assert client.submit(os.getpid).result(timeout=60) != victim
            assert len(client.cluster.workers) == 1

    def test_workers_that_do_not_start_are_an_error(self, monkeypatch):
        def fails(**options):
            raise RuntimeError("Nanny failed to start.")

        monkeypatch.setattr("distributed.LocalCluster", fails)
        with (
            pytest.raises(
                gpupif.errors.DeviceError, match=r"--workers 3: they could not be started \(Nanny failed to start\)"
            ),
            connect.cluster(None, 3),
        ):
            pass

    def test_a_running_cluster_is_used(self, client, tmp_path):
        """Row groups become partitions, names of folders become columns, and columns have Arrow's types."""
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

    @pytest.mark.parametrize(
        ("options", "asked"), [(["--min-cig", "6"], {"where": "cig >= 6"}), (["--top", "9"], {"top": 9})]
    )
    def test_a_cluster_writes_the_requested_cells(self, threads, tmp_path, monkeypatch, capsys, options, asked):
        frame = gpupif.datasets.census(200, columns=5)
        frame.to_parquet(tmp_path / "in.parquet", row_group_size=60)
        command = ["gpupif", "score", str(tmp_path / "in.parquet"), "-o", str(tmp_path / "out"), "--json", *options]
        monkeypatch.setattr(sys, "argv", [*command, *at(threads)])
        main()
        expected = gpupif.score(frame, ["cig", "csf", "wcig"]).cells(**asked).to_arrow()
        facts = json.loads(capsys.readouterr().out)
        assert (facts["cells_written"], facts["rows"]) == (len(expected), 200)
        found = gpupif.open_scores(tmp_path / "out")
        assert found.cells().to_arrow().to_pandas(ignore_metadata=True).equals(expected.to_pandas())
        assert found.provenance["input"]["path"] == str(tmp_path / "in.parquet")

    def test_a_cluster_scores_any_known_columns(self, threads, tmp_path):
        frame = gpupif.datasets.census(200, columns=5)
        frame.to_parquet(tmp_path / "in.parquet", row_group_size=60)
        known = gpupif.AnyKnown(1, among=["region", "sex", "age"], subsets=1)
        asked = {"columns": ["age", "sex"], "known": known}
        facts = on_cluster(tmp_path / "in.parquet", tmp_path / "out", threads.scheduler.address, **asked)
        assert facts["measures"] == ["cig", "csf"]
        expected = gpupif.score(frame, **asked)
        assert facts["attackers"] == repr(expected.subsets)
        assert facts["known_any"] == expected.subsets.to_dict()
        assert facts["known_any"]["sampled"]
        expected = expected.to_arrow().to_pandas()
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "out"), expected, check_exact=True)
        asked["known"] = gpupif.AnyKnown(1, among=["regio"])
        with pytest.raises(gpupif.InputError, match="among: no column 'regio'"):
            on_cluster(tmp_path / "in.parquet", tmp_path / "no", threads.scheduler.address, **asked)

    def test_a_cluster_scores_against_a_population(self, client, tmp_path):
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
    def test_commands_print_the_same_with_a_cluster(self, client, tmp_path, run, command):
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

    def test_a_cluster_inspects_a_table_and_uses_its_roles(self, client, tmp_path, run):
        table, roles = tmp_path / "in.parquet", tmp_path / "roles.toml"
        gpupif.datasets.census(500, columns=5).to_parquet(table, row_group_size=100)
        here = json.loads(run("inspect", table, "--json").out)
        there = json.loads(run("inspect", table, "-o", roles, "--json", *at(client)).out)
        assert all("--scheduler" in command for command in there.pop("commands"))
        del here["commands"]
        assert there | {"seconds": 0} == here | {"seconds": 0, "output": str(roles)}
        printed = [run("suda", table, "--roles", roles, *options).out for options in ((), at(client))]
        assert without_times(printed[0]) == without_times(printed[1])

    def test_arguments_that_no_cluster_takes_are_refused(self, folder, tmp_path, run, monkeypatch):
        monkeypatch.setattr(connect, "CONNECT_SECONDS", 0.2)
        (tmp_path / "t.csv").write_text("a,b\n1,2\n")
        risk = ("risk", folder, "--quasi-identifiers")
        for options, fragment in [
            (
                (*risk, "age", "--scheduler", "tcp://127.0.0.1:1"),
                "--scheduler tcp://127.0.0.1:1: no cluster can be reac",
            ),
            (
                (*risk, "age", "--scheduler", "x", "--workers", "2"),
                "--workers: expected --workers or --scheduler, not both",
            ),
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

    def test_an_error_of_a_command_is_one_line_and_progress_is_shown(self, client, folder, run, monkeypatch):
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

    def test_a_failed_run_leaves_no_files(self, client, folder, tmp_path):
        priors = {"sex": {"nobody": 1.0}}
        with pytest.raises(gpupif.errors.PriorError, match="'sex'"):
            on_cluster(folder, tmp_path / "out", scheduler=client.scheduler.address, priors=priors)
        assert list(tmp_path.iterdir()) == []

    def test_bad_arguments_are_refused_before_any_work(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr(connect, "CONNECT_SECONDS", 0.2)
        (tmp_path / "t.csv").write_text("a,b\n1,2\n")
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "letters.txt").touch()
        out = tmp_path / "out"
        for arguments, more, error, message in [
            ((folder, out), {"scheduler": "tcp://127.0.0.1:1"}, gpupif.errors.DeviceError, "no cluster can be reached"),
            ((folder, out), {"scheduler": "x", "workers": 2}, gpupif.InputError, "--workers or --scheduler, not both"),
            ((folder, out), {"workers": 0}, gpupif.InputError, "at least 1"),
            ((folder, out), {"workers": 1, "elsewhere": {"keep_input": True}}, gpupif.InputError, "--keep-input"),
            ((folder, out), {"workers": 1, "elsewhere": {"sep": ";"}}, gpupif.InputError, "--sep"),
            ((folder, out), {"workers": 1, "elsewhere": {"rows_per_file": 5}}, gpupif.InputError, "--rows-per-file"),
            ((folder, out), {"workers": 1, "measures": ["gig"]}, gpupif.InputError, "gig"),
            ((tmp_path / "t.csv", out), {"workers": 1}, gpupif.InputError, "Convert it"),
            ((tmp_path / "no.parquet", out), {"workers": 1}, gpupif.errors.TableReadError, "no such file"),
            ((folder, folder / "out"), {"workers": 1}, gpupif.errors.OutputError, "the output is inside the input"),
            ((folder, tmp_path / "no" / "out"), {"workers": 1}, gpupif.errors.OutputError, "there is no folder"),
            ((folder, tmp_path / "out.csv"), {"workers": 1}, gpupif.errors.OutputError, "Name one, without an ending"),
            ((folder, tmp_path / "full"), {"workers": 1}, gpupif.errors.OutputError, "exists already"),
            (
                (folder, tmp_path / "full"),
                {"workers": 1, "overwrite": True},
                gpupif.errors.OutputError,
                "would be lost",
            ),
            (
                (folder, out),
                {"workers": 1, "population": tmp_path / "no"},
                gpupif.errors.TableReadError,
                "no such file",
            ),
        ]:
            with pytest.raises(error, match=message):
                on_cluster(*arguments, **more)
        assert not out.exists()

    def test_an_error_names_the_extra_if_dask_is_missing(self, folder, tmp_path, monkeypatch):
        monkeypatch.setattr(connect, "find_spec", lambda name: None)
        with pytest.raises(gpupif.errors.DeviceError, match=r"pip install 'gpupif\[dask\]'"):
            on_cluster(folder, tmp_path / "out", workers=1)
