"""Resources said once for all functions: blocks, the process, the environment; in threads too."""

from __future__ import annotations

import contextlib
import inspect
import re
import threading
import warnings
from pathlib import Path

import pytest

import gpupif
from gpupif.out_of_core import temporary_table
from gpupif.rows.threads import Workers, default_threads
from gpupif.utils import config as module
from gpupif.utils.config import Resources, resources
from gpupif.utils.docs import documented_as
from gpupif.utils.progress import Reporter
from tests.helpers.public_names import public_functions


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    """No option of the process or the environment."""
    monkeypatch.setattr(module, "_process", {})
    for name, _ in module.OPTIONS.values():
        monkeypatch.delenv(name, raising=False)


def test_gpupif_chooses_options_that_are_not_set():
    assert resources() == Resources()
    assert resources().memory > 2**20


def test_nested_blocks_restore_the_outer_options():
    with gpupif.config(device="cpu", memory_limit="8GiB", progress=False) as outer:
        assert outer == resources() == Resources(device="cpu", memory_limit=2**33, progress=False)
        assert outer.memory == 2**33
        with gpupif.config(memory_limit="auto", progress="auto", threads=3):
            assert resources() == Resources(device="cpu", threads=3)
        with contextlib.suppress(ZeroDivisionError), gpupif.config(device="auto"):
            assert resources().device == "auto"
            _ = 1 / 0
        assert resources() == outer
    assert resources() == Resources()


def test_a_block_can_be_used_again_and_within_itself():
    block = gpupif.config(threads=5)
    with block, gpupif.config(threads=2), block:
        assert default_threads() == 5
    assert resources() == Resources()


def test_the_process_comes_before_the_environment_and_a_block_before_both(monkeypatch, tmp_path):
    settings = {"DEVICE": "cpu", "GPU_GROUPING": "cudf", "MEMORY_LIMIT": "2GiB", "TEMP": str(tmp_path)}
    settings |= {"PROGRESS": "0", "NUM_THREADS": "7"}
    for name, value in settings.items():
        monkeypatch.setenv(f"GPUPIF_{name}", value)
    assert resources() == Resources("cpu", "cudf", 2**31, tmp_path, False, 7)
    assert gpupif.set_config(threads=6, memory_limit="auto") == Resources("cpu", "cudf", None, tmp_path, False, 6)
    assert gpupif.set_config(temp="auto") == resources() == Resources("cpu", "cudf", None, None, False, 6)
    with gpupif.config(threads="auto", progress=True):
        assert resources() == Resources("cpu", "cudf", None, None, True, None)
    assert gpupif.set_config() == Resources("cpu", "cudf", None, None, False, 6)


BAD = [
    ("device", "GPUPIF_DEVICE", "tpu", gpupif.InputError, "expected one of auto, cpu, cuda, or cuda:0 .* got 'tpu'"),
    ("gpu_grouping", "GPUPIF_GPU_GROUPING", "rotatoin", gpupif.InputError, "expected .* Did you mean 'rotation'"),
    ("memory_limit", "GPUPIF_MEMORY_LIMIT", "lots", gpupif.InputError, "expected a size such as '2GiB'"),
    ("temp", "GPUPIF_TEMP", "nowhere", gpupif.errors.OutputError, "nowhere is no folder that can be written to"),
    ("progress", "GPUPIF_PROGRESS", "maybe", gpupif.InputError, "expected .*got 'maybe'"),
    ("threads", "GPUPIF_NUM_THREADS", "two", gpupif.InputError, "expected a whole number of threads.* got 'two'"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "variable", "value", "kind", "says"), BAD, ids=[case[0] for case in BAD])
def test_bad_values_of_an_option_are_refused(monkeypatch, tmp_path, option, variable, value, kind, says):
    """A bad argument is refused at once; a bad variable of the environment is refused at its first use."""
    monkeypatch.chdir(tmp_path)
    for say in (gpupif.config, gpupif.set_config):
        with pytest.raises(kind, match=f"^{option}: {says}"):
            say(**{option: value})
        assert resources() == Resources()
    monkeypatch.setenv(variable, value)
    with pytest.raises(kind, match=f"^{variable}: {says}"):
        gpupif.score(gpupif.datasets.census(5))
    with gpupif.config(**{option: "auto"}):
        assert resources() == Resources()


@pytest.mark.parametrize(
    "given", [{"threads": 0}, {"threads": 1.5}, {"progress": 1}, {"temp": 3}, {"device": 3}, {"memory_limit": True}]
)
def test_option_values_of_other_types_are_refused(given):
    with pytest.raises(gpupif.InputError, match=rf"^{next(iter(given))}: expected"):
        gpupif.config(**given)


def test_unknown_options_and_contradictions_are_refused():
    with pytest.raises(TypeError, match="devise"):
        gpupif.config(devise="cpu")
    with pytest.raises(gpupif.InputError, match="gpu_grouping: 'cudf' is a way of GPUs, and device='cpu'"):
        gpupif.config(device="cpu", gpu_grouping="cudf")
    # Said apart it is no contradiction: the block runs on the CPU.
    with gpupif.config(gpu_grouping="rotation"), gpupif.config(device="cpu"):
        assert gpupif.score(gpupif.datasets.census(9), "cig").device == "cpu"


def test_a_config_call_without_with_warns():
    with pytest.warns(RuntimeWarning, match="does nothing without `with`; for the whole process .* gpupif.set_config"):
        gpupif.config(threads=2)
    assert resources() == Resources()
    with warnings.catch_warnings(), gpupif.config(threads=2):
        warnings.simplefilter("error")
        assert default_threads() == 2


def test_threads_do_not_see_each_others_blocks():
    """Each sees its own block, those without one the process."""
    gpupif.set_config(threads=9)
    seen, together = {}, threading.Barrier(3)

    def run(name, block):
        with block:
            together.wait()
            seen[name] = default_threads()
            together.wait()

    blocks = {"two": gpupif.config(threads=2), "three": gpupif.config(threads=3), "none": contextlib.nullcontext()}
    threads = [threading.Thread(target=run, args=given) for given in blocks.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"two": 2, "three": 3, "none": 9}


def test_threads_of_gpupif_see_the_block_of_their_caller():
    here = threading.Barrier(3)

    def look():
        # So that each of the three threads takes one.
        here.wait()
        return resources().memory_limit, threading.get_ident()

    with gpupif.config(memory_limit=1000, threads=3), Workers() as workers:
        found = workers.run(look, [()] * 3)
    assert {limit for limit, _ in found} == {1000}
    assert len({thread for _, thread in found}) == 3


def test_progress_is_shown_as_its_option_says(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    assert not Reporter().visible
    with gpupif.config(progress=True):
        assert Reporter().visible
        assert not Reporter(visible=False).visible
    with gpupif.config(progress=False), Reporter() as report:
        report.say("nothing")
    assert capsys.readouterr().err == ""
    with Reporter() as report:
        report.say("a word")
    assert capsys.readouterr().err == "gpupif: a word\n"


def test_every_function_heeds_the_configuration(tmp_path, monkeypatch):
    """Files are read in streams if there is a limit, with temporary files in the configured folder."""
    frame = gpupif.datasets.census(200, columns=4)
    frame.to_parquet(tmp_path / "in.parquet")
    (tmp_path / "temp").mkdir()
    places, real = [], temporary_table.temporary_folder
    monkeypatch.setattr(temporary_table, "temporary_folder", lambda place: places.append(place) or real(place))
    calls = {
        "risk": lambda table: gpupif.risk(table, ["age", "sex"], "region").to_dict()["worst"],
        "k_anonymity": lambda table: gpupif.models.k_anonymity(table, "age"),
        "suda": lambda table: gpupif.suda(table, 2).score.tolist(),
        "toxic_pairs": lambda table: gpupif.toxic_pairs(table).pairs.to_dict(),
        "entropy": lambda table: gpupif.information.entropy(table, ["age", "sex"]),
    }
    for name, call in calls.items():
        wanted = call(frame)
        with gpupif.config(memory_limit="16GiB", temp=tmp_path / "temp"):
            assert call(tmp_path / "in.parquet") == wanted, name
            assert call(frame) == wanted, name
        assert places == [tmp_path / "temp"], name
        places.clear()
    assert not list((tmp_path / "temp").iterdir())


def test_every_parameter_of_a_function_is_documented():
    functions = list(public_functions().values())
    assert gpupif.score_files in functions
    for function in functions:
        _, parameters = inspect.getdoc(function).split("\nParameters\n----------\n")
        parameters = parameters.partition("\nReturns\n-------\n")[0]
        named = {
            name for entry in re.findall(r"^([a-z_, ]+):$", parameters, re.MULTILINE) for name in entry.split(", ")
        }
        assert set(inspect.signature(function).parameters) == named, function


def test_shared_documentation_is_in_every_docstring():
    shared = inspect.getdoc(gpupif.score)
    attack = shared[shared.index("\nknown:\n") : shared.index("\nReturns\n")]
    assert attack in inspect.getdoc(gpupif.score_files)
    own = inspect.getdoc(gpupif.models.delta_disclosure)
    titles = re.findall(r"\n\n(\w+)\n---", own)
    assert titles == ["Parameters", "Returns", "Raises", "Warns", "References", "Examples"]
    assert own[own.index("\nmissing:\n") :].partition("\n\n")[0] in inspect.getdoc(gpupif.models.k_anonymity)


def test_documentation_of_an_unknown_parameter_is_an_error():
    def source(table):
        """One.

        Parameters
        ----------
        table:
            Any table.
        """

    def function(table, other):
        """Another.

        Parameters
        ----------
        other:
            Any other.

        Returns
        -------
        int
            One.
        """

    undocumented = function.__doc__.replace("other:", "more:")
    documented = documented_as(source)(function).__doc__
    assert documented.startswith(
        "Another.\n\nParameters\n----------\ntable:\n    Any table.\nother:\n    Any other.\n\nR"
    )
    assert "Raises" not in documented
    function.__doc__ = undocumented
    with pytest.raises(LookupError, match="function, source: parameter 'other'"):
        documented_as(source)(function)
    function.__doc__ = None
    assert documented_as(source)(function).__doc__ is None


def test_the_path_auto_is_a_folder_and_the_word_auto_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "auto").mkdir()
    with gpupif.config(temp=Path("auto")):
        assert resources().temp == Path("auto")
    with gpupif.config(temp="auto"):
        assert resources().temp is None
