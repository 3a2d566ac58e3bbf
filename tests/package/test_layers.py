"""The layers of the package: imports go down only, those for typing and those within functions too."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.helpers.checkout import ROOT, nodes_of, reads_modules

pytestmark = reads_modules
# Low to high; those in one line know nothing of each other.
LAYERS = """
    errors _version
    kernels
    measures
    utils
    rows
    gpu
    io
    report
    encoding
    engines
    frames
    attack
    results
    pipeline
    out_of_core
    dask
    scoring
    marginals
    disclosure special_uniques inspection
    hierarchies
    criteria
    treatment
    comparison
    protection
    treatments models information
    piflib
    datasets
    release
    nightly
    cli
    __main__
"""
LEVEL = {name: level for level, names in enumerate(LAYERS.strip().splitlines()) for name in names.split()}
# Among them the three that only hand public names on.
MOST_MODULES_IN_THE_ROOT = 8


def modules():
    """The file of each module, by its name without `gpupif`; kernels lie beside the package."""
    found = {}
    for folder, base in ((ROOT / "gpupif", ROOT / "gpupif"), (ROOT / "kernels", ROOT)):
        for file in folder.rglob("*.py"):
            parts = file.relative_to(base).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(name, file, known):
    """The modules that a module imports, wherever it does."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            full = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = ["gpupif", *package][: len(package) + 2 - node.level] if node.level else []
            base = [*above, *(node.module.split(".") if node.module else [])]
            full = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for parts in full:
            # A name that a module has, and not a module itself, is of that module.
            within = [".".join(parts[1:stop]) for stop in range(len(parts), 1, -1) if parts[0] == "gpupif"]
            yield from [one for one in within if one in known][:1]


@pytest.fixture(scope="module")
def imports():
    """All (importing, imported) pairs of modules. A package's own face hands names on, and is no module of it."""
    files = modules()
    known = {name for name, file in files.items() if name}
    pairs = {(name, other) for name in known for other in imported(name, files[name], known) if other != name}
    assert ("scoring.score", "engines.choose") in pairs
    return pairs


def layer(module):
    return module.split(".")[0]


def test_every_part_has_a_layer():
    assert {layer(name) for name in modules() if name} == set(LEVEL)


def test_modules_import_only_from_lower_layers(imports):
    up = {
        (one, other)
        for one, other in imports
        if layer(one) != layer(other) and LEVEL[layer(one)] <= LEVEL[layer(other)]
    }
    assert up == set()


def test_no_modules_import_each_other_in_a_circle(imports):
    sorter = TopologicalSorter()
    for one, other in sorted(imports):
        sorter.add(one, other)
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


def test_few_modules_are_in_the_root_of_the_package():
    assert len(list((ROOT / "gpupif").glob("*.py"))) <= MOST_MODULES_IN_THE_ROOT
