"""Files told apart by what is in them, and read to find that out only where their size and time do not say it."""

from __future__ import annotations

import hashlib
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.io.base import stamps_of
from gpupif.nightly.table import file_digests as digests
from gpupif.nightly.table.kept_table import verify_state
from gpupif.nightly.table.table_changes import InputChanges, InputFile, input_changes

LONG_AGO = 10**18


@pytest.fixture
def hashed(monkeypatch):
    """The names of the files that are read to be told apart."""
    found, real = [], digests.file_digest

    def digest(file):
        found.append(file.name)
        return real(file)

    monkeypatch.setattr(digests, "file_digest", digest)
    return found


@pytest.fixture
def files(tmp_path):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    made = [tmp_path / "in" / "a", tmp_path / "in" / "sub" / "b"]
    for number, file in enumerate(made):
        file.write_bytes(bytes([number]) * (1 << 20 | number))
        os.utime(file, ns=(LONG_AGO, LONG_AGO))
    return made


@pytest.fixture
def look(tmp_path, files):
    return lambda say=None: digests.file_digests(tmp_path / "files.kept", tmp_path / "in", stamps_of(files), say)


def test_only_changed_files_are_hashed_again(files, look, hashed):
    expected = [hashlib.blake2b(file.read_bytes(), digest_size=32).hexdigest() for file in files]
    assert look() == expected
    assert look() == expected
    assert hashed == ["a", "b"]
    os.utime(files[0], ns=(LONG_AGO + 1, LONG_AGO + 1))
    assert look() == expected
    assert hashed == ["a", "b", "a"]
    files[1].write_bytes(b"other")
    os.utime(files[1], ns=(LONG_AGO, LONG_AGO))
    assert look() == [expected[0], hashlib.blake2b(b"other", digest_size=32).hexdigest()]
    assert hashed == ["a", "b", "a", "b"]


def test_a_file_that_changed_just_before_is_read_again(files, look, hashed, monkeypatch):
    os.utime(files[0])
    first = look()
    status = files[0].stat()
    files[0].write_bytes(b"\7" * status.st_size)
    os.utime(files[0], ns=(status.st_mtime_ns, status.st_mtime_ns))
    later = time.time_ns() + 3 * 10**9
    monkeypatch.setattr("time.time_ns", lambda: later)
    assert look()[0] != first[0]
    assert look() == look()
    assert hashed == ["a", "b", "a"]


def test_files_are_hashed_again_if_the_clock_was_set_back(files, look, hashed, monkeypatch):
    monkeypatch.setattr("time.time_ns", lambda: LONG_AGO - 1)
    assert look() == look()
    assert sorted(hashed) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_damaged_file_of_digests_is_put_aside(tmp_path, look, hashed, place):
    expected = look()
    file = tmp_path / "files.kept"
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    assert verify_state(tmp_path) == [f"{file}: damaged; the next run hashes all files again."]
    said = []
    assert look(said.append) == look(said.append) == expected
    assert len(hashed) == 4
    assert said == [f"{file}: damaged; put aside as damaged-files.kept, and all files are hashed again."]
    assert (tmp_path / "damaged-files.kept").read_bytes() == content
    assert verify_state(tmp_path) == []


def test_changed_files_are_told_apart_as_added_removed_and_renamed():
    def files(**digests):
        return [InputFile(path, 1, 1, digest, 1) for path, digest in digests.items()]

    before = files(a="1", b="2", c="3", d="4", e="4")
    now = files(a="1", b="9", x="3", y="4", z="5")
    assert input_changes(before, now, ["b", "z"]) == InputChanges(
        added=["z"], removed=["e"], changed=["b"], renamed=[("c", "x"), ("d", "y")], unchanged=1, read=["b", "z"]
    )
    found = input_changes([], now)
    assert (found.added, found.removed, found.changed, found.unchanged) == (["a", "b", "x", "y", "z"], [], [], 0)


contents = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("123"))


@given(contents, contents)
def test_every_file_is_in_one_change(before, after):
    old, new = ([InputFile(path, 1, 2, digest, 3) for path, digest in one.items()] for one in (before, after))
    found = input_changes(old, new)
    gone, came = [past for past, _ in found.renamed], [path for _, path in found.renamed]
    assert sorted([*found.removed, *gone, *found.changed]) == sorted(
        path for path, digest in before.items() if after.get(path) != digest
    )
    assert sorted([*found.added, *came, *found.changed]) == sorted(
        path for path, digest in after.items() if before.get(path) != digest
    )
    assert found.unchanged == len(before.items() & after.items())
    assert all(before[past] == after[path] for past, path in found.renamed)
    # No file is both removed and added with the same content.
    assert not {before[path] for path in found.removed} & {after[path] for path in found.added}
