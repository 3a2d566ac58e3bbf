"""The package as it is installed: cheap to import, and where it keeps what it compiles."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gpupif
from gpupif.datasets import census
from tests.helpers.checkout import ROOT, nodes_of, reads_modules
from tests.helpers.public_names import NAMESPACES, public_names

pytestmark = pytest.mark.subprocess

CACHE = "from gpupif.kernels import cache; print(cache.CACHE_FOLDER)"


def cache_folder(before="", **environment):
    """Where a process that runs `before` first keeps what it compiles."""
    cleared = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    command = [sys.executable, "-P", "-c", before + CACHE]
    done = subprocess.run(command, env={**cleared, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_a_cache_folder_that_others_may_write_to_is_not_used(tmp_path):
    """Numba runs the code that it finds in its cache folder."""
    good = cache_folder(XDG_CACHE_HOME=str(tmp_path / "c"), TMPDIR=str(tmp_path))
    assert good.startswith(str(tmp_path / "c"))
    assert Path(good).stat().st_mode & 0o077 == 0
    Path(good).chmod(0o777)
    fallback = cache_folder(XDG_CACHE_HOME=str(tmp_path / "c"), TMPDIR=str(tmp_path))
    assert fallback.startswith(str(tmp_path / f"gpupif-{os.getuid()}"))
    Path(fallback).parent.chmod(0o777)
    assert cache_folder(XDG_CACHE_HOME=str(tmp_path / "c"), TMPDIR=str(tmp_path)) == ""


@pytest.mark.slow
def test_each_numba_has_a_folder_of_its_own(tmp_path):
    """Numba throws away what another version of it compiled."""
    other = cache_folder("import numba; numba.__version__ = '0.0'; ", XDG_CACHE_HOME=str(tmp_path))
    assert Path(other).parent == tmp_path / "gpupif"
    assert other != cache_folder(XDG_CACHE_HOME=str(tmp_path))
    assert other == cache_folder("import numba; numba.__version__ = '0.0'; ", XDG_CACHE_HOME=str(tmp_path))


@pytest.mark.slow
def test_old_cache_folders_of_other_versions_are_removed(tmp_path):
    parent = tmp_path / "gpupif"
    for name, days in (("old", 100), ("recent", 1)):
        (parent / name).mkdir(parents=True)
        (parent / name / "code").touch()
        os.utime(parent / name, (time.time() - days * 86_400,) * 2)
    parent.chmod(0o700)
    found = Path(cache_folder(XDG_CACHE_HOME=str(tmp_path)))
    assert {path.name for path in parent.iterdir()} == {"recent", found.name}
    assert (parent / "recent" / "code").exists()


@pytest.mark.slow
def test_only_the_first_run_on_a_machine_says_that_it_compiles(tmp_path):
    table = tmp_path / "table.csv"
    census(100, columns=3).to_csv(table, index=False)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    code = f"import gpupif; gpupif.toxic_pairs({str(table)!r})"
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        said.append(done.stderr.count("compiling"))
    assert said == [1, 0]


@pytest.mark.slow
def test_the_package_works_in_the_folder_of_its_checkout():
    """Where the README leaves its reader after `pip install .`: the folder gpupif there has no kernels inside."""
    code = "import gpupif; print(gpupif.score(gpupif.datasets.pif_example()).pif(100))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(3.3371022654516564)


def test_every_public_name_can_be_had():
    found = {name: getattr(gpupif, name) for name in gpupif.__all__}
    assert {"score", "InputError", "Scores", "datasets", "__version__"} <= set(found)
    assert dir(gpupif) == sorted(found)
    assert all(public_names().values())
    with pytest.raises(AttributeError, match="scores"):
        gpupif.scores  # noqa: B018


def test_few_names_are_at_the_top_of_the_package():
    """Other names are in modules named for their subject."""
    names = [name for name in dir(gpupif) if not name.startswith("_")]
    assert len(names) <= 38
    assert set(NAMESPACES) <= set(names)


@pytest.mark.slow
def test_names_in_modules_can_be_imported_from_there():
    code = (
        "from gpupif.treatments import Round; from gpupif.results import Summary; import gpupif.models; print('done')"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"
    assert "Comparison" in dir(gpupif.results)
    with pytest.raises(AttributeError, match=r"module 'gpupif.results' has no attribute 'Nobody'"):
        gpupif.results.Nobody  # noqa: B018


def test_only_the_kernels_of_a_checkout_are_part_of_the_package():
    assert importlib.import_module("gpupif.kernels.log_units") is gpupif.kernels.log_units
    with pytest.raises(ModuleNotFoundError, match=r"gpupif\.tests"):
        importlib.import_module("gpupif.tests")


def test_importing_the_package_is_cheap_until_something_is_scored():
    modules = "gpupif, gpupif.cli.main, gpupif.datasets"
    code = f"import sys, {modules}; print([m for m in ('numpy', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_wrong_commands_are_answered_before_numba_and_pandas_are_imported(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")
    commands = [
        ["--version"],
        ["score", "--help"],
        ["score", "missing.parquet", "-o", "scores.parquet"],
        ["score", str(table), "-o", "scores.parquet", "--measures", "cigg"],
        ["risk", "missing.parquet", "--quasi-identifiers", "a"],
        ["suda", "missing.parquet"],
        ["toxic", "missing.parquet"],
    ]
    code = f"""
import sys
from gpupif.cli.main import main
for command in {commands!r}:
    sys.argv = ["gpupif", *command]
    try:
        main()
    except SystemExit as end:
        print("exit", end.code, [name for name in ("numba", "pandas") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("exit")] == ["exit 2 []"] * 5
    assert done.stderr.count("gpupif: error: ") == 5


@pytest.mark.slow
@reads_modules
def test_modules_that_benchmarks_and_tests_import_exist():
    """Other packages, such as the libraries of a GPU, are not installed everywhere and are not checked."""
    missing = []
    for file in [*ROOT.glob("benchmarks/*.py"), *ROOT.glob("tests/**/*.py")]:
        for node in nodes_of(file):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
                module = node.module.replace("gpupif.kernels", "kernels")
                place = ROOT / module.replace(".", "/")
                own = module.partition(".")[0] in ("gpupif", "kernels", "benchmarks", "tests")
                if own and not (place.with_suffix(".py").exists() or place.is_dir()):
                    missing.append((file.name, node.module))
    assert missing == []


def test_type_checkers_and_editors_find_the_kernels_of_a_checkout():
    """They look for `gpupif.kernels` within the folder `gpupif`, which has a link there."""
    for file in (ROOT / "kernels").glob("**/*.py"):
        assert (ROOT / "gpupif" / file.relative_to(ROOT)).samefile(file)
