"""Working folders of runs from files to files: only their owner may use them, and they are deleted in the end."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

import gpupif
from gpupif.errors import OutputError
from gpupif.io.checkpoints import Store, identity, last_mark, work_folder
from gpupif.utils.private_folder import MARKER
from tests.helpers.configured import configured
from tests.helpers.other_user import give_away
from tests.helpers.pieces import assert_same, census_folder, in_pieces, nothing_left
from tests.helpers.runs_that_fail import MEASURES, fail

DIARY = b"dear diary"


@pytest.fixture
def source(tmp_path):
    return census_folder(tmp_path / "in", rows=60)


@pytest.fixture
def shared(tmp_path):
    """Return a folder like /tmp: everybody may write there, and only owners may rename their entries."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def victim(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("diary", "lock", "begun.json", "scores.csv"):
        (folder / name).write_bytes(DIARY)
    return folder


def score(source, output, **options):
    return gpupif.score_files(source, output, MEASURES, **options)


def treat(source, output, **options):
    return gpupif.treat_files(source, output, [gpupif.treatments.Drop(["sex"])], **options)


RUNS = {"score": score, "treat": treat}
ways = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


def assert_untouched(victim, shared):
    assert {file.name: file.read_bytes() for file in victim.iterdir()} == dict.fromkeys(
        ("diary", "lock", "begun.json", "scores.csv"), DIARY
    )
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777


@ways
@pytest.mark.parametrize("planted", ["folder", "link", "open to all"])
@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}], ids=["", "overwrite", "resume"])
def test_a_planted_work_folder_is_refused(source, shared, victim, monkeypatch, run, planted, options):
    work = work_folder(shared / "scores")
    if planted == "link":
        work.symlink_to(victim)
    else:
        work.mkdir()
        (work / "lock").symlink_to(victim / "diary")
    if planted == "open to all":
        work.chmod(0o777)
    else:
        give_away(work, monkeypatch)
    with pytest.raises(
        OutputError, match=rf"{work.name}: expected a folder.* Move it away, or choose another output"
    ) as said:
        run(source, shared / "scores", **options)
    assert "\n" not in str(said.value)
    assert_untouched(victim, shared)
    assert [entry.name for entry in shared.iterdir()] == [work.name]


def test_a_planted_place_for_spill_files_is_refused(tmp_path, source, shared, victim):
    work_folder(tmp_path / "scores", shared).symlink_to(victim)
    with pytest.raises(OutputError, match=r"expected a folder, got a link.*temp \(--temp\)"):
        configured(score, source, tmp_path / "scores", temp=shared)
    assert_untouched(victim, shared)


@pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}], ids=["", "overwrite", "resume"])
def test_an_own_folder_renamed_to_a_work_folder_is_not_emptied(source, tmp_path, options):
    """Other users of a shared folder may rename its entries; only we may delete files in our folders."""
    thesis = tmp_path / "thesis"
    thesis.mkdir(0o755)
    (thesis / "chapter").write_bytes(DIARY)
    (tmp_path / "temp").mkdir()
    for work in (work_folder(tmp_path / "scores"), work_folder(tmp_path / "scores", tmp_path / "temp")):
        thesis.rename(work)
        with pytest.raises(
            OutputError, match=r"expected a folder that gpupif made, got another one, with chapter in it"
        ):
            configured(score, source, tmp_path / "scores", temp=tmp_path / "temp", **options)
        assert (work / "chapter").read_bytes() == DIARY
        work.rename(thesis)
    assert stat.S_IMODE(thesis.stat().st_mode) == 0o755


def test_a_planted_lock_is_not_followed(tmp_path, source, victim):
    """A link in a working folder of ours is not followed either."""
    work = work_folder(tmp_path / "scores")
    work.mkdir(0o700)
    (work / MARKER).symlink_to(victim / "diary")
    with pytest.raises(OutputError, match=r"could not be written: Too many levels of symbolic links"):
        score(source, tmp_path / "scores")
    assert (victim / "diary").read_bytes() == DIARY


@pytest.mark.sampled(5)
@ways
@pytest.mark.parametrize(("mask", "elsewhere"), [(0, True), (0o022, False)])
def test_no_other_user_can_read_the_files_of_a_run(tmp_path, source, monkeypatch, run, mask, elsewhere):
    """The rights are checked at each mark of the checkpoint; a published table has the rights of new files."""
    modes, real = {}, Store.mark
    (tmp_path / "temp").mkdir()

    def looking(store, step, facts):
        real(store, step, facts)
        for work in [*tmp_path.glob(".gpupif-*"), *tmp_path.glob("temp/.gpupif-*")]:
            for place in (work, *work.rglob("*")):
                modes[str(place.relative_to(tmp_path))] = place.is_dir(), stat.S_IMODE(place.stat().st_mode)

    monkeypatch.setattr(Store, "mark", looking)
    before = os.umask(mask)
    try:
        with in_pieces(30, 40):
            configured(run, source, tmp_path / "out", **({"temp": tmp_path / "temp"} if elsewhere else {}))
    finally:
        os.umask(before)
    assert len(modes) > 5
    private = {True: 0o700, False: 0o600}
    assert {name: found for name, found in modes.items() if private[found[0]] != found[1]} == {}
    published = {(entry.is_dir(), stat.S_IMODE(entry.stat().st_mode)) for entry in (tmp_path / "out").rglob("*")}
    assert published == {(False, 0o666 & ~mask)}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o777 & ~mask
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("private", [False, True])
def test_a_planted_file_does_not_pass_on_its_rights(shared, monkeypatch, private):
    from gpupif.io.checkpoints import publish
    from gpupif.io.write import write_text

    for name in ("report", "scores"):
        (shared / name).touch()
        (shared / name).chmod(0o666)
        give_away(shared / name, monkeypatch)
    before = os.umask(0o027)
    try:
        write_text("secret", shared / "report", True, private)
        (shared / "staged").touch(0o600)
        publish(shared / "staged", shared / "scores")
    finally:
        os.umask(before)
    assert stat.S_IMODE((shared / "report").stat().st_mode) == (0o600 if private else 0o640)
    assert stat.S_IMODE((shared / "scores").stat().st_mode) == 0o640


class Killed(BaseException):
    """The error that ends a run at some moment, as a kill would."""


@pytest.mark.slow
def test_a_kill_during_the_clean_up_leaves_it_to_the_next_run(tmp_path, source, monkeypatch):
    """The next run ends the killed one, unless nothing is left to do; a kill before every other change on the disk."""
    output, stores, moments = tmp_path / "out.csv", [], 0
    (tmp_path / "temp").mkdir()
    real_close = Store.close

    def run():
        return configured(score, source, output, resume=True, temp=tmp_path / "temp")

    for moment in itertools.count(1, 2):
        changes = itertools.count(1)

        def dying(real, changes=changes, moment=moment):
            def call(*given, **named):
                if next(changes) == moment:
                    raise Killed
                return real(*given, **named)

            return call

        def close(store, keep, dying=dying):
            stores.append(store)
            with monkeypatch.context() as patch:
                for name in ("unlink", "rmdir", "rename", "replace"):
                    patch.setattr(os, name, dying(getattr(os, name)))
                real_close(store, keep)

        output.unlink(missing_ok=True)
        with monkeypatch.context() as patch:
            patch.setattr(Store, "close", close)
            try:
                run()
                break
            except Killed:
                # The lock ends with the process.
                stores[-1]._let_go()
                moments += 1
        assert run().rows == 60
        assert nothing_left(tmp_path)
        assert nothing_left(tmp_path / "temp")
    assert moments > 5
    with pytest.raises(OutputError, match="exists already, and no killed run is left"):
        run()


@pytest.mark.parametrize("late", ["open", "listdir", "flock"])
def test_a_run_that_begins_while_another_ends_has_its_own_folder(tmp_path, monkeypatch, late):
    """The run works in a folder with its own name, and can be resumed."""
    work = work_folder(tmp_path / "out")
    ending, beginning = Store(work, work), Store(work, work)
    ending.open(False, tmp_path / "out")
    holder = {"open": os, "listdir": os, "flock": fcntl}[late]
    real, calls = getattr(holder, late), []

    def ends(*given, **named):
        calls.append(given)
        if len(calls) == 1:
            ending.close(False)
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(holder, late, ends)
        assert not beginning.open(True, tmp_path / "out")
    beginning.mark("begun", {"x": 1})
    beginning.close(True)
    resumed = Store(work, work)
    assert resumed.open(True, tmp_path / "out")
    assert resumed.done("begun") == {"x": 1}
    resumed.close(False)
    assert list(tmp_path.iterdir()) == []


def test_a_clean_up_deletes_no_file_of_a_run_that_begins(tmp_path, monkeypatch):
    work, real = work_folder(tmp_path / "out"), os.listdir
    ending, beginning = Store(work, work), Store(work, work)
    ending.open(False, tmp_path / "out")

    def begins(place):
        found = real(place)
        if found == [MARKER]:
            monkeypatch.setattr(os, "listdir", real)
            beginning.open(True, tmp_path / "out")
            beginning.mark("begun", {"x": 1})
        return found

    monkeypatch.setattr(os, "listdir", begins)
    ending.close(False)
    beginning.close(True)
    resumed = Store(work, work)
    assert resumed.open(True, tmp_path / "out")
    resumed.close(False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize("planted", ["link", "pipe", "folder", "theirs"])
def test_a_planted_last_mark_is_not_read(tmp_path, source, shared, victim, monkeypatch, planted):
    output = shared / "scores.csv"
    score(source, output)
    mark = last_mark(work_folder(output))
    content = json.dumps({"identity": identity(output), "options": {}})
    if planted == "link":
        (victim / "diary").write_text(content)
        mark.symlink_to(victim / "diary")
    elif planted == "pipe":
        os.mkfifo(mark)
    elif planted == "folder":
        mark.mkdir()
    else:
        mark.write_text(content)
        give_away(mark, monkeypatch)
    with pytest.raises(OutputError, match="exists already, and no killed run is left"):
        score(source, output, resume=True)


@ways
def test_a_new_file_gets_the_rights_of_the_replaced_one(tmp_path, source, run):
    output = tmp_path / "out.parquet"
    for mode in (0o640, 0o604):
        run(source, output, overwrite=True)
        output.chmod(mode)
    run(source, output, overwrite=True)
    assert stat.S_IMODE(output.stat().st_mode) == 0o604


def test_a_readable_work_folder_of_another_version_is_closed_to_others(tmp_path, source, monkeypatch):
    work = work_folder(tmp_path / "out")
    work.mkdir()
    work.chmod(0o755)
    modes, real = [], Store.mark

    def looking(store, *given):
        modes.append(stat.S_IMODE(work.stat().st_mode))
        return real(store, *given)

    monkeypatch.setattr(Store, "mark", looking)
    score(source, tmp_path / "out")
    assert set(modes) == {0o700}
    assert nothing_left(tmp_path)


def test_a_run_goes_on_in_its_folder_if_the_path_is_swapped(tmp_path, source, victim, monkeypatch):
    """Other users may rename the folder; the run goes on in its own folder and deletes no file in theirs."""
    shared, real = tmp_path / "open", Store.mark
    shared.mkdir()
    shared.chmod(0o777)
    work = work_folder(shared / "scores")

    def swapping(store, step, facts):
        real(store, step, facts)
        if not work.is_symlink():
            work.rename(shared / "stolen")
            work.symlink_to(victim)

    monkeypatch.setattr(Store, "mark", swapping)
    with in_pieces(30, 40):
        scores = score(source, shared / "scores")
    assert_same(scores, gpupif.score(source, MEASURES))
    assert {file.name for file in victim.iterdir()} == {"diary", "lock", "begun.json", "scores.csv"}
    assert list((shared / "stolen").iterdir()) == []


@ways
@pytest.mark.parametrize("options", [{"overwrite": True}, {"resume": True}, {}], ids=["overwrite", "resume", ""])
def test_an_output_linked_by_another_user_is_refused(source, shared, victim, monkeypatch, run, options):
    (shared / "scores.csv").symlink_to(victim / "scores.csv")
    (shared / "out").symlink_to(victim / "new")
    give_away(shared / "scores.csv", monkeypatch)
    give_away(shared / "out", monkeypatch)
    for name in ("scores.csv", "out"):
        with pytest.raises(OutputError, match=rf"{name} is a link that another user made .*Remove it, or name the pl"):
            run(source, shared / name, **options)
    assert_untouched(victim, shared)
    assert sorted(entry.name for entry in shared.iterdir()) == ["out", "scores.csv"]


def test_a_link_made_by_another_user_during_the_run_is_refused(source, shared, victim, monkeypatch):
    from gpupif.out_of_core.scores_writer import ScoreWriter

    output, real = shared / "scores.csv", ScoreWriter.publish

    def late(*given):
        output.symlink_to(victim / "scores.csv")
        give_away(output, monkeypatch)
        real(*given)

    monkeypatch.setattr(ScoreWriter, "publish", late)
    with pytest.raises(OutputError, match=r"scores\.csv is a link that another user made"):
        score(source, output, overwrite=True)
    assert_untouched(victim, shared)


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet", "record.json", "roles.toml"])
def test_result_files_follow_no_link_of_another_user(shared, victim, monkeypatch, name):
    from gpupif.io.write import write_text

    frame = gpupif.datasets.census(20, columns=3)
    write = {
        "scores.csv": lambda path: gpupif.score(frame).write(path, overwrite=True),
        "scores.parquet": lambda path: gpupif.score(frame).to_parquet(path, overwrite=True),
        "record.json": lambda path: gpupif.treat(frame, [gpupif.treatments.Drop(["sex"])]).record.save(
            path, overwrite=True
        ),
        "roles.toml": lambda path: write_text("x", path, overwrite=True),
    }[name]
    (victim / name).write_bytes(DIARY)
    (shared / name).symlink_to(victim / name)
    give_away(shared / name, monkeypatch)
    with pytest.raises(OutputError, match=rf"{name} is a link that another user made"):
        write(shared / name)
    assert (victim / name).read_bytes() == DIARY


def test_own_links_are_followed_and_stay(tmp_path, source):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out.csv").symlink_to(tmp_path / "disk" / "scores.csv")
    for overwrite in (False, True):
        score(source, tmp_path / "out.csv", overwrite=overwrite)
        assert (tmp_path / "out.csv").is_symlink()
    assert (tmp_path / "disk" / "scores.csv").is_file()
    assert nothing_left(tmp_path / "disk")


@ways
def test_a_failed_run_resumes_within_its_folder(tmp_path, source, monkeypatch, run):
    where = {
        "score": "gpupif.out_of_core.scores_writer.write_groups",
        "treat": "gpupif.treatment.treat_files.write_groups",
    }
    with in_pieces(30, 40):
        with monkeypatch.context() as patch:
            fail(patch, where[run.__name__], after=1)
            with pytest.raises(gpupif.GpupifError, match="something went wrong"):
                run(source, tmp_path / "out", resume=True)
        (work,) = tmp_path.glob(".gpupif-*")
        assert stat.S_IMODE(work.stat().st_mode) == 0o700
        half = {file.name: file.stat().st_mtime_ns for file in (work / "scores").glob("*.parquet")}
        run(source, tmp_path / "out", resume=True)
    assert len(half) == 1
    assert {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in half} == half
    run(source, tmp_path / "again")
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").glob("*.parquet")} == {
        file.name: file.read_bytes() for file in (tmp_path / "again").glob("*.parquet")
    }
    shutil.rmtree(tmp_path / "again")
    assert nothing_left(tmp_path)


def test_errors_name_files_as_users_know_them(tmp_path, source, monkeypatch):
    """Messages show paths, not the number of an open folder."""
    real = os.open

    def full(path, flags, *given, **named):
        if "encoded" in str(path) and flags & os.O_CREAT:
            raise OSError(28, "No space left on device")
        return real(path, flags, *given, **named)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OutputError, match=r"could not be written: No space left on device") as said:
        score(source, tmp_path / "out")
    assert str(said.value).startswith(str(Path(tmp_path, ".gpupif-")))
