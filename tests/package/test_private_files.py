"""One module makes the folders and files that a run leaves on its way; all others ask it to."""

from __future__ import annotations

import ast

import pytest

from tests.helpers.checkout import ROOT, nodes_of, reads_modules

pytestmark = reads_modules
# The module that makes them.
MAKER = "utils/private_folder.py"
# Calls that make a folder or a file, or change who may read it: each of them with the umask's rights, or through links.
MAKING = {"mkdir", "makedirs", "write_text", "write_bytes", "touch", "chmod", "fchmod", "symlink_to", "tofile"}
TEMPORARY = {"NamedTemporaryFile", "TemporaryDirectory", "mkdtemp", "mkstemp", "TemporaryFile"}
FLAGS = {"O_CREAT", "O_WRONLY", "O_RDWR", "O_TMPFILE"}
# The calls that are left, and why each is as safe.
LEFT = {
    # A private file that is published, or replaces one, gets its rights.
    ("io/write.py", "fchmod"),
    ("io/checkpoints.py", "chmod"),
    # An output becomes a kept file of the state.
    ("nightly/record/kept_scores.py", "chmod"),
    # New, and with mode 600 or 700, by their own making.
    ("io/temporary_folder.py", "mkstemp"),
    ("dask/cluster_client.py", "TemporaryDirectory"),
    ("marginals/counts_on_disk.py", "mkdtemp"),
    ("special_uniques/search_by_sets.py", "TemporaryFile"),
    ("treatment/random/key.py", "O_CREAT"),
    ("treatment/random/key.py", "O_WRONLY"),
    # Locks that are there, opened through no link.
    ("io/temporary_folder.py", "O_RDWR"),
    # To a file that `open_private` opened.
    ("treatment/file_table.py", "tofile"),
    # To a score file in a work folder, or in a temporary one.
    ("io/parquet_writer.py", "open to write"),
    # To nowhere.
    ("cli/main.py", "open to write"),
}


def made_in(nodes):
    """The calls among a module's nodes that make a folder or a file."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in FLAGS:
            yield node.attr
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in TEMPORARY or (name in MAKING and isinstance(node.func, ast.Attribute)):
            yield name
        modes = [
            one.value for one in [*node.args, *(key.value for key in node.keywords)] if isinstance(one, ast.Constant)
        ]
        if name == "open" and any(
            isinstance(mode, str) and set(mode) & set("wax+") for mode in modes if len(str(mode)) < 4
        ):
            yield "open to write"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("folder.mkdir()", ["mkdir"]),
        ("path.open('wb')", ["open to write"]),
        ("open(path, mode='a')", ["open to write"]),
        ("open(path)", []),
        ("path.open('rb')", []),
        ("os.open(path, os.O_CREAT)", ["O_CREAT"]),
        ("tempfile.mkdtemp()", ["mkdtemp"]),
        ("write_text(text, path, True)", []),
    ],
)
def test_calls_that_make_files_are_found(text, found):
    assert list(made_in(ast.walk(ast.parse(text)))) == found


def test_only_one_module_makes_folders_and_files():
    package = ROOT / "gpupif"
    made = {
        (str(file.relative_to(package)), name)
        for file in package.rglob("*.py")
        for name in made_in(nodes_of(file))
        if str(file.relative_to(package)) != MAKER
    }
    assert made == LEFT
