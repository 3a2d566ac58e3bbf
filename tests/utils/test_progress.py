"""The word that kernels are being compiled: once, where it is kept, and not where nothing is to be said."""

from __future__ import annotations

import pytest
from numba.core import event

import gpupif
from gpupif.kernels import cache
from gpupif.utils import progress


@pytest.fixture
def compile_twice(monkeypatch, capsys):
    """What is said while two things are compiled and kept in a folder."""

    def compiled(folder):
        monkeypatch.setattr(progress, "_said", False)
        monkeypatch.setattr(cache, "CACHE_FOLDER", folder)
        with progress.announce_compilation():
            for _ in range(2):
                with event.trigger_event("numba:compile"):
                    pass
        return capsys.readouterr().err

    return compiled


def test_the_message_names_the_folder_of_compiled_kernels(compile_twice):
    said = compile_twice("/home/someone/.cache/gpupif/0123456789abcdef")
    assert said == (
        "gpupif: compiling for this machine, for a few seconds; once for each kind of question, as it is kept in "
        "/home/someone/.cache/gpupif.\n"
    )


def test_the_message_says_if_kernels_cannot_be_kept(compile_twice):
    said = compile_twice("")
    assert "every time, as there is no folder to keep it in: set XDG_CACHE_HOME to one" in said
    assert said.count("\n") == 1


def test_no_message_comes_if_progress_is_off(compile_twice):
    with gpupif.config(progress=False):
        assert compile_twice("") == ""
