"""Folders of scores that Dask writes: they are replaced as a whole, and only scores are replaced."""

from __future__ import annotations

import fcntl

import dask
import dask.dataframe as dd
import pandas as pd
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.dask.scores_folder import check_written
from gpupif.engines.choose import choose_engine, requested_device
from gpupif.io.checkpoints import Store, work_folder
from gpupif.results.provenance import read_description
from gpupif.utils.private_folder import MARKER
from tests.helpers.other_user import give_away

# Dask 2026.8 uses what pandas 3.1 is going to drop.
pytestmark = [pytest.mark.dask, pytest.mark.filterwarnings("ignore:The inplace keyword")]


def make(rows, partitions, **more):
    return gpupif.score(dd.from_pandas(gpupif.datasets.census(rows, columns=3), npartitions=partitions), **more)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_old_scores_in_the_folder_are_replaced(tmp_path):
    out = tmp_path / "scores"
    make(50, 5).to_parquet(out, write_metadata_file=True)
    assert len(names(out)) == 7
    assert gpupif.open_scores(out).rows == 50
    make(40, 2).to_parquet(str(out))
    assert names(out) == ["part-000000.parquet", "part-000001.parquet"]
    with gpupif.config(device="cpu"):
        expected = gpupif.score(gpupif.datasets.census(40, columns=3)).to_arrow().to_pandas()
    pd.testing.assert_frame_equal(pd.read_parquet(out).reset_index(drop=True), expected, check_exact=True)
    make(40, 2, attackers={"all": ["age", "sex"]}).to_parquet(f"file://{out}")
    assert all(name.startswith("all_c") for name in pd.read_parquet(out))
    assert len(pd.read_parquet(out)) == 40
    assert names(tmp_path) == ["scores"]


@pytest.mark.every_engine
def test_scores_name_the_device_once_they_are_computed(tmp_path):
    with gpupif.config(device="auto"):
        ran = choose_engine(requested_device()).device
        scores, others = make(50, 3), make(50, 3)
    assert scores.device == "auto"
    scores.to_parquet(tmp_path / "scores")
    assert scores.device == ran
    stored = gpupif.open_scores(tmp_path / "scores")
    assert (stored.device, stored.summary().device) == (ran, ran)
    # Each file is written before the description of all files is known.
    part = read_description(tmp_path / "scores" / "part-000000.parquet")
    assert part.about.device == "each worker's own"
    assert others.summary().device == ran
    with gpupif.config(device="cpu"):
        asked = make(50, 3)
    asked.to_parquet(tmp_path / "asked")
    assert read_description(tmp_path / "asked" / "part-000000.parquet").about.device == asked.device == "cpu"


def test_old_scores_stay_if_writing_fails(tmp_path, monkeypatch):
    out = tmp_path / "scores"
    make(50, 3).to_parquet(out)
    before = {name: (out / name).read_bytes() for name in names(out)}

    def fail(part):
        raise RuntimeError("midway")

    lazy = dd.from_map(fail, range(2), meta=gpupif.datasets.census(1, columns=3).iloc[:0])
    with pytest.raises(RuntimeError, match="midway"):
        gpupif.score(lazy).to_parquet(out)
    write, written = pq.write_table, []

    def full(*arguments, **options):
        written.append(1)
        if len(written) > 1:
            raise OSError(28, "No space left on device")
        write(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", full)
        with pytest.raises(gpupif.errors.OutputError, match="No space left"):
            make(60, 3).to_parquet(out)
    assert {name: (out / name).read_bytes() for name in names(out)} == before
    assert names(tmp_path) == ["scores"]


def test_outputs_that_cannot_be_written_are_refused(tmp_path):
    scores = make(20, 2)
    scores.to_parquet(tmp_path / "scores")
    with pytest.raises(gpupif.errors.OutputError, match="exists already"):
        scores.to_parquet(tmp_path / "scores", overwrite=False)
    (tmp_path / "other" / "sub").mkdir(parents=True)
    (tmp_path / "other" / "sub" / "letters.txt").touch()
    with pytest.raises(gpupif.errors.OutputError, match=r"holds sub/letters.txt, which is no score file"):
        scores.to_parquet(tmp_path / "other")
    (tmp_path / "table").mkdir()
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "table" / "part-000000.parquet")
    with pytest.raises(gpupif.errors.OutputError, match=r"holds part-000000.parquet, which is no score file"):
        scores.to_parquet(tmp_path / "table")
    (tmp_path / "file").touch()
    with pytest.raises(gpupif.errors.OutputError, match="is a file; Dask writes a folder"):
        scores.to_parquet(tmp_path / "file")
    for name in ("table/part-000000.parquet", "new.csv", "new.feather", "new.PQ"):
        for write in (scores.write, scores.to_parquet):
            with pytest.raises(
                gpupif.errors.OutputError, match=f"{name}: Dask writes a folder of Parquet files. Name one, "
            ):
                write(tmp_path / name)
    with pytest.raises(gpupif.errors.OutputError, match="there is no folder"):
        scores.to_parquet(tmp_path / "no" / "scores")
    for option, value in [
        ("append", True),
        ("partition_on", ["cig_age"]),
        ("compute", False),
        ("filesystem", object()),
    ]:
        with pytest.raises(gpupif.InputError, match=f"^{option}: "):
            scores.to_parquet(tmp_path / "new", **{option: value})
    assert names(tmp_path) == ["file", "other", "scores", "table"]


def test_scores_are_written_to_other_file_systems_but_not_replaced(tmp_path):
    scores, place = make(20, 2), f"memory://{tmp_path.name}"
    scores.to_parquet(place, write_index=False)
    assert len(dd.read_parquet(place)) == 20
    with pytest.raises(gpupif.errors.OutputError, match="only folders on a disk of this machine are replaced"):
        scores.to_parquet(place)


def test_files_of_a_killed_run_are_removed(tmp_path):
    """Any kind of run cleans up; a run that is still working is left alone."""
    frame = gpupif.datasets.census(20, columns=3)
    frame.to_parquet(tmp_path / "in.parquet")
    out = tmp_path / "scores"
    left = work_folder(out, tmp_path)

    def leave():
        left.mkdir(0o700)
        (left / MARKER).touch()
        (left / "0123456789abcdef").mkdir()
        (left / "0123456789abcdef" / "part-000000.parquet").touch()

    leave()
    make(20, 2).to_parquet(out)
    assert names(tmp_path) == ["in.parquet", "scores"]
    leave()
    with gpupif.config(device="cpu"):
        gpupif.score_files(tmp_path / "in.parquet", out, overwrite=True)
    assert names(tmp_path) == ["in.parquet", "scores"]
    leave()
    with (left / MARKER).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(gpupif.errors.OutputError, match="another run that writes it is at work"):
            make(20, 2).to_parquet(out)
    assert (left / "0123456789abcdef" / "part-000000.parquet").exists()


def test_a_cluster_does_not_write_into_a_folder_that_others_may_change(tmp_path, monkeypatch):
    """Workers use the path, which others could redirect; threads of this process use the open folder."""
    scores, shared = make(20, 2), tmp_path / "shared"
    shared.mkdir()
    with dask.config.set(scheduler="processes"):
        for mode in (0o777, 0o775):
            shared.chmod(mode)
            with pytest.raises(
                gpupif.errors.OutputError, match=rf"shared: expected a folder in wh.* {mode:o}\. .* chmod \+t"
            ):
                scores.to_parquet(shared / "scores")
        shared.chmod(0o755)
        with monkeypatch.context() as patch:
            give_away(shared, patch)
            with pytest.raises(gpupif.errors.OutputError, match=r"shared: expected a folder of yours"):
                scores.to_parquet(shared / "scores")
    assert names(shared) == []


def test_a_work_folder_swapped_during_writing_gets_no_scores(tmp_path, monkeypatch):
    shared, other = tmp_path / "shared", tmp_path / "other"
    shared.mkdir()
    shared.chmod(0o777)
    other.mkdir()
    real = Store.open

    def swapping(store, *given):
        real(store, *given)
        store.place.rename(shared / "stolen")
        store.place.symlink_to(other)

    monkeypatch.setattr(Store, "open", swapping)
    make(20, 2).to_parquet(shared / "scores")
    assert names(shared / "scores") == ["part-000000.parquet", "part-000001.parquet"]
    assert names(other) == []


def test_errors_of_the_disk_name_the_output(tmp_path, monkeypatch):
    def full(*given):
        raise OSError(28, "No space left on device", str(given[0]))

    monkeypatch.setattr("gpupif.dask.scores_folder.replace_folder", full)
    with pytest.raises(gpupif.errors.OutputError, match=r"scores: could not be written: No space left") as said:
        make(20, 2).to_parquet(tmp_path / "scores")
    assert "/proc/" not in str(said.value)
    assert names(tmp_path) == []


def test_missing_score_files_of_workers_are_an_error(tmp_path):
    (tmp_path / "part-000000.parquet").touch()
    check_written(tmp_path, 1)
    with pytest.raises(gpupif.errors.OutputError, match="1 of 2 score files are not there"):
        check_written(tmp_path, 2)
