"""The documentation as a site: `pip install '.[docs]'`, then `sphinx-build -W docs docs/_build/html`.

Notebooks are executed by the build. All other code blocks are executed by tests/docs/test_pages.py.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import Any

import gpupif

FIELD = re.compile(r"((?:\w+, )*\w+): (.+)")

project = "gpupif"
author = "The developers of gpupif"
copyright = "2026, the developers of gpupif"  # noqa: A001
release = version = gpupif.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "examples/*.md"]
suppress_warnings = ["myst.strikethrough"]
default_role = "py:obj"

# Links name headings as GitHub spells them, so that pages read well in both places.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]

# Notebooks are text. Each is executed by every build, from an empty folder; an error in a cell fails the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_execution_show_tb = True

# Docstrings give the types: signatures show names and defaults.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autosummary_generate = False
napoleon_google_docstring = False
napoleon_use_rtype = False
maximum_signature_line_length = 80
python_maximum_signature_line_length = 80
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "gpupif"
html_static_path = ["_static"]
html_css_files = ["gpupif.css"]
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"gpupif {version}"},
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "search_bar_text": "Search: k-anonymity, exit code, ...",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Commands of notebooks start this Python's gpupif, in 80 columns and without progress.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
os.environ["COLUMNS"] = "88"
os.environ["GPUPIF_PROGRESS"] = "0"

# Without kept bytecode each of these commands compiles all modules anew, which takes twice the time of the command.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    _bytecode = tempfile.TemporaryDirectory()
    os.environ["PYTHONPYCACHEPREFIX"] = _bytecode.name


def _as_markup(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Make the fields of a dataclass a list, and have bars and double stars stand for themselves.

    The docstring of a dataclass lists its fields as ``name: text``, with further lines of the text below.
    """
    made: list[str] = []
    in_fields = before = False
    for line in lines:
        parts = re.split(r"(``.*?``)", line)
        text = "".join(part if part.startswith("``") else re.sub(r"([|]|[*]{2})", r"\\\1", part) for part in parts)
        field = FIELD.fullmatch(text) if what == "class" and (in_fields or not before) else None
        if field:
            names = ", ".join(f"``{field_name}``" for field_name in field[1].split(", "))
            made += ["", names, f"    {field[2]}"]
            in_fields = True
        elif in_fields and text.strip() and not text.startswith(" "):
            made.append(f"    {text}" if before else text)
            in_fields = before
        else:
            made.append(text)
        before = bool(text.strip())
    lines[:] = made


def setup(app: Any) -> None:
    """Connect what reads docstrings, before the sections of NumPy's style are read."""
    app.connect("autodoc-process-docstring", _as_markup, priority=400)
