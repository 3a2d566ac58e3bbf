"""A run from files to files that fails at some call."""

from __future__ import annotations

from importlib import import_module

import pytest

import gpupif
from gpupif.errors import InputError
from tests.helpers.configured import configured
from tests.helpers.pieces import census_folder, in_pieces

MEASURES = ["cig", "csf", "wcig"]


def fail(monkeypatch, name, after=0):
    """Have a function of the run raise an error, at the call after so many."""
    module, _, attribute = name.rpartition(".")
    real = getattr(import_module(module), attribute)
    calls = []

    def failing(*given, **named):
        calls.append(name)
        if len(calls) > after:
            raise InputError("something went wrong")
        return real(*given, **named)

    monkeypatch.setattr(name, failing)


def half_done(tmp_path, monkeypatch, **arguments):
    """A folder with a table, and a run from it that failed before the end, to be resumed."""
    source = census_folder(tmp_path / "in", rows=100)
    with in_pieces(30, 40), monkeypatch.context() as patch:
        fail(patch, "gpupif.out_of_core.scores_writer.write_groups", after=1)
        with pytest.raises(InputError, match="something went wrong"), gpupif.config(memory_limit="4GiB"):
            configured(gpupif.score_files, source, tmp_path / "out", MEASURES, resume=True, **arguments)
    return source
