"""Private folders belong to their owner alone, whatever the umask, planted files, and changes by other users."""

from __future__ import annotations

import contextlib
import os
import stat

import pytest

from gpupif.errors import OutputError
from gpupif.utils.private_folder import (
    HeldFolder,
    followed,
    give_usual_rights,
    open_as_is,
    open_private,
    private_folder,
    real_path,
    rights_of,
    trusted_place,
    write_private,
)
from tests.helpers.other_user import give_away


@contextlib.contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o022, 0o277])
def test_new_folders_and_files_are_their_owners_alone(tmp_path, mask):
    with umask(mask):
        folder = private_folder(tmp_path / "above" / "folder")
        held = HeldFolder(tmp_path / "held")
        with open_private(folder / "written") as sink:
            sink.write(b"secret")
        with open_private(folder / "written", "ab") as sink:
            sink.write(b" more")
        os.close(open_as_is(folder / "lock"))
        write_private(held.path / "mark", b"done")
    held.close()
    files = [folder / "written", folder / "lock", tmp_path / "held" / "mark"]
    assert [mode(file) for file in files] == [0o600] * 3
    assert [mode(place) for place in (folder, tmp_path / "held")] == [0o700] * 2
    assert [file.read_bytes() for file in files] == [b"secret more", b"", b"done"]


def test_the_group_of_a_shared_folder_is_kept(tmp_path):
    """Outputs in an office's shared folder belong to its group, so files in a work folder must belong to it, too."""
    tmp_path.chmod(0o2775)
    with umask(0o277):
        folder = private_folder(tmp_path / "folder")
    assert mode(folder) == 0o2700


@pytest.mark.parametrize("make", [private_folder, HeldFolder])
@pytest.mark.parametrize("planted", ["folder", "link", "own link", "open to a group", "sticky", "file"])
def test_an_existing_folder_that_is_not_ours_alone_is_refused(tmp_path, monkeypatch, make, planted):
    victim, place = tmp_path / "victim", tmp_path / "work"
    victim.mkdir()
    (victim / "diary").write_text("dear diary")
    if planted in ("link", "own link"):
        place.symlink_to(victim)
    elif planted == "file":
        place.touch()
    else:
        place.mkdir()
        place.chmod({"open to a group": 0o770, "sticky": 0o1777}.get(planted, 0o755))
    if planted in ("link", "folder"):
        give_away(place, monkeypatch)
    before = place.lstat()
    said = {
        "folder": r"work: expected a folder of yours \(user \d+\), got one of user \d+.* Choose another place\.",
        "file": "work: expected a folder, got a file. Choose another place.",
        "open to a group": "nobody else can write to, got one of mode 770. Choose another place. .*chmod go-w .*work$",
        "sticky": "nobody else can write to, got one of mode 1777",
    }.get(planted, "work: expected a folder, got a link. Choose another place.")
    with pytest.raises(OutputError, match=said) as found:
        make(place)
    assert "\n" not in str(found.value)
    assert (place.lstat().st_mode, place.lstat().st_uid) == (before.st_mode, before.st_uid)
    assert (victim / "diary").read_text() == "dear diary"


def test_an_existing_folder_keeps_its_rights(tmp_path):
    tmp_path.chmod(0o755)
    private_folder(tmp_path)
    assert mode(tmp_path) == 0o755


@pytest.mark.parametrize("make", [open_private, open_as_is, lambda file: write_private(file, b"x")])
def test_files_are_opened_through_no_link(tmp_path, make):
    folder = private_folder(tmp_path / "work")
    (tmp_path / "diary").write_text("dear diary")
    (folder / "lock").symlink_to(tmp_path / "diary")
    with contextlib.suppress(OSError):
        make(folder / "lock")
    assert (tmp_path / "diary").read_text() == "dear diary"


def test_a_held_folder_stays_the_same_if_its_path_is_swapped(tmp_path):
    """A user who may rename folders puts another folder in the place of ours while it is filled, read and deleted."""
    victim, place = tmp_path / "victim", tmp_path / "work"
    victim.mkdir()
    (victim / "diary").write_text("dear diary")
    held = HeldFolder(place)
    write_private(held.path / "codes", b"secret")
    place.rename(tmp_path / "stolen")
    place.symlink_to(victim)
    write_private(private_folder(held.path / "inner") / "codes", b"secret")
    assert (tmp_path / "stolen" / "inner" / "codes").read_bytes() == b"secret"
    with trusted_place(held.path / "inner" / "scores") as target:
        target.write_bytes(b"scores")
    assert (tmp_path / "stolen" / "inner" / "scores").exists()
    assert real_path(held.path / "codes") == tmp_path / "stolen" / "codes"
    held.remove()
    held.close()
    assert list((tmp_path / "stolen").iterdir()) == []
    assert [entry.name for entry in victim.iterdir()] == ["diary"]


def test_own_links_are_followed(tmp_path, monkeypatch):
    real = tmp_path / "disk" / "office"
    real.mkdir(parents=True)
    (tmp_path / "up").symlink_to("disk/../disk")
    (tmp_path / "here").symlink_to(tmp_path / "up" / "office")
    (tmp_path / "scores").symlink_to("here/scores.csv")
    assert followed(tmp_path / "scores") == real / "scores.csv"
    assert followed(tmp_path / "here" / "not" / "there") == real / "not" / "there"
    monkeypatch.chdir(tmp_path / "here")
    for name in ("scores.csv", "./scores.csv", "../office/scores.csv", "../../up/office/scores.csv"):
        with trusted_place(tmp_path.joinpath(real, name)) as target, trusted_place(type(real)(name)) as relative:
            assert real_path(target) == real_path(relative) == real / "scores.csv"
    for name in (".", "../office", "..", "../.."):
        assert followed(type(real)(name)) == (real / name).resolve()
    assert followed(type(real)("/")) == type(real)("/")
    with pytest.raises(FileNotFoundError), trusted_place(tmp_path / "none" / "scores.csv"):
        pass


def test_circular_links_are_refused(tmp_path):
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        followed(tmp_path / "one" / "scores.csv")


@pytest.mark.parametrize("link", ["here", "scores.csv"])
def test_links_of_another_user_are_not_followed(tmp_path, monkeypatch, link):
    (tmp_path / "victim").mkdir()
    target = tmp_path / "victim" / ("" if link == "here" else link)
    (tmp_path / link).symlink_to(target)
    give_away(tmp_path / link, monkeypatch)
    wanted = tmp_path / "here" / "scores.csv" if link == "here" else tmp_path / link
    said = rf"scores\.csv: .*/{link} is a link that another user made \(user \d+\), to {target}\. Remove it, or name"
    for follow in (followed, lambda path: trusted_place(path).__enter__()):
        with pytest.raises(OutputError, match=said):
            follow(wanted)


@pytest.mark.parametrize("mask", [0, 0o027])
def test_published_files_get_the_usual_rights_of_new_files(tmp_path, mask):
    with umask(mask):
        write_private(private_folder(tmp_path / "scores" / "inner") / "part", b"")
        write_private(tmp_path / "file", b"")
        give_usual_rights(tmp_path / "scores")
        give_usual_rights(tmp_path / "file")
    assert mode(tmp_path / "file") == mode(tmp_path / "scores" / "inner" / "part") == 0o666 & ~mask
    assert mode(tmp_path / "scores") == mode(tmp_path / "scores" / "inner") == 0o777 & ~mask
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "scores"]


def test_only_files_pass_on_their_rights(tmp_path):
    """A link has all rights: if it handed them on, a link in the place of an output would open it to everybody."""
    (tmp_path / "file").touch(0o640)
    (tmp_path / "link").symlink_to("file")
    assert [rights_of(tmp_path / name) for name in ("file", "link", "none", ".")] == [0o640, None, None, None]


def test_only_own_files_pass_on_their_rights(tmp_path, monkeypatch):
    """If another user's file handed its rights on, a planted file that is open to everybody would open the output."""
    (tmp_path / "scores.csv").touch()
    (tmp_path / "scores.csv").chmod(0o666)
    give_away(tmp_path / "scores.csv", monkeypatch)
    assert rights_of(tmp_path / "scores.csv") is None


@pytest.mark.parametrize("name", ["a/link/b/file", "a/b/..", "a/absolute/c"])
def test_an_interruption_while_a_path_is_followed_closes_no_folder_twice(tmp_path, monkeypatch, name):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to("../a")
    (tmp_path / "a" / "absolute").symlink_to(tmp_path)
    close, closed, interrupted_at = os.close, 0, 0

    def close_and_interrupt(number):
        nonlocal closed
        close(number)
        closed += 1
        if closed == interrupted_at:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", close_and_interrupt)
    followed(tmp_path / name)
    total = closed
    assert total >= 3
    for number in range(1, total + 1):
        closed, interrupted_at = 0, number
        with pytest.raises(KeyboardInterrupt):
            followed(tmp_path / name)
