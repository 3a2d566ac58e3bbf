"""Scoring on a cluster of worker processes on this machine: `python -m benchmarks.cluster`.

CIG and CSF of every cell of the synthetic census, float64: Parquet files in, scores in the workers' memory out. Each
number of workers, and the same in the memory of one process, by all cores and by one thread, in a process of its own;
the scores are compared to the last bit. Says what was sent, by direction, and where the seconds of workers went.
Writes benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import gpupif
from gpupif.cli.info import describe

RESULTS = Path(__file__).parent / "results"
GIB = 2**30
WARM_UP_ROWS = 2_000
# What a worker does, by what Dask calls its tasks; any other is "plan".
STAGES = {
    "read_parquet": "read",
    "gpupif-encode": "encode",
    "gpupif-rows": "encode",
    "gpupif-send": "send rows",
    "gpupif-score": "score, send scores",
    "gpupif-receive": "receive scores",
    "shuffle-transfer": "shuffle",
    "shuffle-barrier": "shuffle",
    "p2pshuffle": "shuffle",
}
# The tasks that return what is sent, by where it goes: distinct rows to parts, their scores back to partitions.
SENDING = {"gpupif-send": "out", "gpupif-leave": "home"}


def make_folder(folder: Path, rows: int, partition_rows: int) -> None:
    """Write the census to a folder of Parquet files with `partition_rows` rows each."""
    folder.mkdir()
    frame = gpupif.datasets.census(rows)
    for number, start in enumerate(range(0, rows, partition_rows)):
        frame.iloc[start : start + partition_rows].to_parquet(folder / f"{number:04}.parquet", index=False)


def checksum(frame: pd.DataFrame) -> pd.Series[int]:
    """Return the CRC-32 of the scores' bits, in a series of one number."""
    return pd.Series(np.array([zlib.crc32(np.ascontiguousarray(frame.to_numpy().T).tobytes())]))


def shuffled_bytes(dask_scheduler: Any) -> float:
    """Return the bytes that all P2P shuffles so far have sent, including those to the same worker."""
    return float(dask_scheduler.cumulative_worker_metrics.get(("p2p", "foreground", "shards", "bytes"), 0))


def peak_memory() -> int:
    """Return the peak resident memory of the process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_in_memory(job: dict[str, Any]) -> dict[str, Any]:
    """Time the job in this process, by all cores or by a single thread; return its figures and checksums."""
    folder = Path(job["folder"])
    if job["threads"] is not None:
        pa.set_cpu_count(job["threads"])
    with gpupif.config(device="cpu"):
        gpupif.score(gpupif.datasets.census(WARM_UP_ROWS))
    seconds, busy, scores = [], [], None
    for _ in range(job["runs"]):
        scores = frames = None
        started, before = time.perf_counter(), time.process_time()
        table = pd.read_parquet(folder)
        with gpupif.config(device="cpu", progress=False, threads=job["threads"]):
            scores = gpupif.score(table)
        frames = scores.cig, scores.csf
        seconds.append(time.perf_counter() - started)
        busy.append(time.process_time() - before)
        del table
    assert frames is not None
    edges = range(0, len(frames[0]), job["partition_rows"])
    checks = [[int(checksum(one.iloc[a : a + job["partition_rows"]])[0]) for a in edges] for one in frames]
    found = {"workers": 0, "threads": job["threads"], "seconds": min(seconds), "runs": seconds}
    return {**found, "cpu_seconds": min(busy), "peak_bytes": peak_memory(), "checks": checks}


def account(tasks: Sequence[Mapping[str, Any]], workers: int, seconds: float) -> dict[str, dict[str, float]]:
    """Add up a scheduler's tasks: the bytes that they sent, by direction, and the seconds of a worker, by stage.

    seconds: that all took; those in which a worker ran no task are "between tasks".
    """
    from distributed.utils import key_split

    sent = dict.fromkeys(SENDING.values(), 0.0)
    spent = dict.fromkeys([*dict.fromkeys(STAGES.values()), "plan"], 0.0)
    for task in tasks:
        kind = key_split(task["key"])
        if kind in SENDING:
            sent[SENDING[kind]] += task["nbytes"]
        took = sum(one["stop"] - one["start"] for one in task["startstops"] if one["action"] == "compute")
        spent[STAGES.get(kind, "plan")] += took / workers
    return {"sent_bytes": sent, "seconds_of_a_worker": {**spent, "between tasks": seconds - sum(spent.values())}}


def run_on_workers(job: dict[str, Any]) -> dict[str, Any]:
    """Time the job on several worker processes with one thread each; return its figures and checksums."""
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster, wait

    def cpu_seconds(client: Client) -> float:
        """Return the processor seconds of all workers together."""
        return float(sum(client.run(time.process_time).values()))

    def settled(client: Client) -> float:
        """Wait until all workers have reported to the scheduler, and return the bytes shuffled."""
        before, now = -1.0, client.run_on_scheduler(shuffled_bytes)
        while before != now:
            time.sleep(1.5)
            before, now = now, client.run_on_scheduler(shuffled_bytes)
        return float(now)

    options = {"threads_per_worker": 1, "memory_limit": None, "dashboard_address": ":0", "silence_logs": "ERROR"}
    with LocalCluster(n_workers=job["workers"], **options) as cluster, Client(cluster) as client:
        warm = dd.from_pandas(gpupif.datasets.census(WARM_UP_ROWS), npartitions=2 * job["workers"])
        gpupif.score(warm).frame().compute()
        before, idle = settled(client), max(client.run(peak_memory).values())
        seconds, busy, accounts, kept = [], [], [], None
        client.get_task_stream()
        for _ in range(job["runs"]):
            kept = None
            used, since, started = cpu_seconds(client), time.time(), time.perf_counter()
            kept = gpupif.score(dd.read_parquet(job["folder"])).persist()
            wait([kept.cig, kept.csf])
            seconds.append(time.perf_counter() - started)
            busy.append(cpu_seconds(client) - used)
            accounts.append(account(client.get_task_stream(start=since), job["workers"], seconds[-1]))
        assert kept is not None
        checks = dask.compute(*(one.map_partitions(checksum, meta=(None, "i8")) for one in (kept.cig, kept.csf)))
        return {
            "workers": job["workers"],
            "threads": 1,
            "seconds": min(seconds),
            "runs": seconds,
            "cpu_seconds": min(busy),
            "shuffled_bytes": (settled(client) - before) / job["runs"],
            **accounts[seconds.index(min(seconds))],
            "peak_bytes": max(client.run(peak_memory).values()),
            "idle_bytes": idle,
            "checks": [one.tolist() for one in checks],
        }


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Run one job in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.cluster", "--job", json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{named(job)} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def named(job: Mapping[str, Any]) -> str:
    """Return the display name of a job or of its result."""
    workers, threads = job["workers"], job["threads"] if not job["workers"] else 1
    what = f"{workers} worker{'s' * (workers > 1)}" if workers else "one process"
    return f"{what}, {'all cores' if threads is None else 'a thread'}{' each' * (workers > 1)}"


def draw(document: dict[str, Any], file: Path) -> None:
    """Plot seconds against the number of workers, and the runs in one process as horizontal lines."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "gpupif"
    from matplotlib import pyplot as plt

    alone = [result for result in document["results"] if not result["workers"]]
    others = [result for result in document["results"] if result["workers"]]
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    workers, seconds = ([result[key] for result in others] for key in ("workers", "seconds"))
    axes.plot(workers, seconds, "o-", color="#c0392b", label="cluster")
    for result, line in zip(alone, ("--", ":"), strict=True):
        axes.axhline(result["seconds"], color="#707b7c", linestyle=line, label=named(result))
    axes.set(xlabel="worker processes of one thread", ylabel="seconds, Parquet in to scores out", ylim=(0, None))
    axes.set_xticks(workers)
    axes.set_title(f"{document['rows']:,} rows: {document['machine']['CPU']}", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def report(result: Mapping[str, Any], rows: int) -> None:
    """Print a result."""
    took = f"{named(result):24} {result['seconds']:8.2f} s ({result['cpu_seconds']:.2f} s of all cores)"
    took += f", peak {result['peak_bytes'] / GIB:.2f} GiB"
    if not result["workers"]:
        print(took, flush=True)
        return
    sent = ", ".join(f"{size / rows:.1f} {where}" for where, size in result["sent_bytes"].items())
    print(f"{took}, {result['shuffled_bytes'] / rows:.1f} bytes a row shuffled ({sent})")
    spent = (f"{what} {seconds:.2f} s" for what, seconds in result["seconds_of_a_worker"].items())
    print(f"    {', '.join(spent)}", flush=True)


def main() -> None:
    """Run, check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="size of the census")
    parser.add_argument("--partition-rows", type=int, default=1_000_000, help="rows of a partition")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--runs", type=int, default=3, help="runs of each, of which the best counts")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for cluster.json and cluster.svg")
    parser.add_argument("--no-plot", action="store_true", help="do not draw cluster.svg (needs matplotlib)")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        job = json.loads(arguments.job)
        print(json.dumps(run_on_workers(job) if job["workers"] else run_in_memory(job)))
        return
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "census"
        make_folder(folder, arguments.rows, arguments.partition_rows)
        for workers, threads in ((0, None), (0, 1), *((workers, 1) for workers in arguments.workers)):
            job = {"workers": workers, "threads": threads, "folder": str(folder)}
            job |= {"partition_rows": arguments.partition_rows, "runs": arguments.runs}
            result = run_job(job)
            results.append(result)
            report(result, arguments.rows)
    checks = [result.pop("checks") for result in results]
    if any(check != checks[0] for check in checks):
        sys.exit("the scores differ")
    document = {
        "machine": {
            **{k: v for k, v in describe().items() if k in ("CPU", "memory", "GPU")},
            "system": platform.platform(),
        },
        "packages": {
            name: version(name) for name in ("gpupif", "dask", "distributed", "pandas", "numpy", "numba", "pyarrow")
        },
        "rows": arguments.rows,
        "partition_rows": arguments.partition_rows,
        "same_bits": True,
        "results": results,
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "cluster.json").write_text(json.dumps(document, indent=2) + "\n")
    if not arguments.no_plot:
        draw(document, arguments.out / "cluster.svg")


if __name__ == "__main__":
    main()
