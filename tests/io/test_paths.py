"""What cannot be read among the files that a path names is refused, by its name; nothing is left out in silence."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import gpupif
from gpupif.errors import TableReadError
from gpupif.io.paths import find_input

FRAME = pd.DataFrame({"age": [39, 39, 40, 41], "sex": ["f", "m", "f", None]})
DENIED = "could not be read: Permission denied. Check its rights, and those of its folders."
NOT_AS_ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
WAYS = {"memory": gpupif.score, "streams": partial(gpupif.score_files, output="out.parquet", overwrite=True)}
in_every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("in", "in/sub", "in/sub/deep", "in/other"):
        Path(name).mkdir()
        FRAME.to_parquet(f"{name}/t.parquet")
    return Path("in")


def refused(path, message, way=WAYS["memory"]):
    with pytest.raises(TableReadError) as caught:
        way(path)
    assert str(caught.value) == message


PATTERNS = ["in", "in/**", "in/**/*.parquet", "in/*/*.parquet", "*/sub/*", "**"]


@pytest.mark.parametrize("path", PATTERNS)
def test_a_folder_that_cannot_be_listed_is_an_error(folder, monkeypatch, path):
    list_folder = os.scandir

    def scandir(place="."):
        if Path(place).name == "sub":
            raise PermissionError(13, "Permission denied", str(place))
        return list_folder(place)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(TableReadError) as caught:
        find_input(Path(path))
    assert str(caught.value) == f"in/sub: {DENIED}"


def test_a_pattern_does_not_open_folders_it_does_not_match(folder, monkeypatch):
    list_folder = os.scandir

    def scandir(place="."):
        if Path(place).name == "sub":
            raise PermissionError(13, "Permission denied", str(place))
        return list_folder(place)

    monkeypatch.setattr(os, "scandir", scandir)
    assert find_input(Path("in/*.parquet")).files == [Path("in/t.parquet")]
    assert find_input(Path("in/o*/*")).files == [Path("in/other/t.parquet")]


@NOT_AS_ROOT
@in_every_way
@pytest.mark.parametrize("path", PATTERNS)
@pytest.mark.parametrize("rights", [0, 0o444, 0o311])
def test_a_folder_without_rights_is_named_in_the_error(folder, path, rights, way):
    Path("in/sub").chmod(rights)
    try:
        with pytest.raises(TableReadError) as caught:
            way(path)
    finally:
        Path("in/sub").chmod(0o755)
    assert str(caught.value).startswith("in/sub")
    assert str(caught.value).endswith(DENIED)


@NOT_AS_ROOT
@in_every_way
@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "feather"])
def test_a_file_without_rights_is_named_in_the_error(folder, ending, way):
    Path("files").mkdir()
    for name in ("a", "b"):
        file = f"files/{name}.{ending}"
        if "csv" in ending:
            FRAME.to_csv(file, index=False)
        else:
            (FRAME.to_parquet if ending == "parquet" else FRAME.to_feather)(file)
    Path(f"files/b.{ending}").chmod(0)
    paths = [f"files/b.{ending}", f"files/*.{ending}", *(["files"] if ending == "parquet" else [])]
    for path in paths:
        refused(path, f"files/b.{ending}: {DENIED}", way)


@in_every_way
@pytest.mark.parametrize(
    ("other", "kind"), [("u.csv", "CSV"), ("sub/u.tsv.gz", "CSV"), ("z.txt", "CSV"), ("u.feather", "Feather")]
)
def test_files_of_different_kinds_in_a_folder_are_refused(folder, other, kind, way):
    Path("in", other).write_text("age,sex\n1,f\n")
    first, second = ("t.parquet is Parquet", f"{Path(other).name} is {kind}")
    if sorted(["t.parquet", "other/t.parquet", other])[0] == other:
        first, second = second, first
    refused(
        "in",
        f"in: expected files of one kind, {first} and {second}. Choose a pattern that matches only one of them, such "
        "as 'in/**/*.parquet'.",
        way,
    )
    assert find_input(Path("in/**/*.parquet")).files == sorted(Path("in").rglob("*.parquet"))


def test_hidden_and_other_files_of_a_folder_are_left_out(folder):
    for name in ("_SUCCESS", "._u.csv", "_u.csv", ".t.parquet.crc", ".x/u.csv", "_x/u.csv", "README.md", "run.log"):
        Path("in", name).parent.mkdir(exist_ok=True)
        Path("in", name).write_text("no table")
    Path("in/named.parquet").mkdir()
    assert find_input(Path("in")).files == [
        Path("in", name) for name in ("other/t.parquet", "sub/deep/t.parquet", "sub/t.parquet", "t.parquet")
    ]


def test_a_file_that_is_gone_is_an_error(folder):
    Path("in/gone.parquet").symlink_to("nowhere")
    with pytest.raises(TableReadError, match=r"gone.parquet: could not be read"):
        gpupif.score("in")
