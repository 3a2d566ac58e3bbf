"""Docstrings: public methods have one, or the method that they implement has; first words say the subject."""

from __future__ import annotations

import ast

from tests.helpers.checkout import ROOT, nodes_of, reads_modules

pytestmark = reads_modules


def documented_methods():
    """Of each class of the package, by name: its bases, and of its public methods whether they are documented."""
    classes = {}
    for file in (ROOT / "gpupif").rglob("*.py"):
        for node in nodes_of(file)[0].body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bases = {name.id for name in node.bases if isinstance(name, ast.Name)}
                methods = {
                    one.name: ast.get_docstring(one) is not None
                    for one in node.body
                    if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")
                }
                classes.setdefault(node.name, []).append((file.relative_to(ROOT), bases, methods))
    return classes


def test_public_methods_are_documented():
    classes = documented_methods()

    def inherits(bases, method):
        several = [one for base in bases for one in classes.get(base, ())]
        return any(methods.get(method) or inherits(above, method) for _, above, methods in several)

    lacking = [
        f"{file}: {name}.{method}"
        for name, several in classes.items()
        for file, bases, methods in several
        for method, documented in methods.items()
        if not documented and not inherits(bases, method)
    ]
    assert lacking == []
    assert len(classes) > 100


# Words that leave open what a docstring is about, or make its reader wait for it.
FORBIDDEN = frozenset(
    ["Of", "What", "By", "Those", "As", "Where", "Which", "So", "One", "With", "For", "That", "How", "Whether"]
)


def docstrings():
    """Return the docstrings of the package and its kernels: (place, docstring) pairs."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [
        (f"{file.relative_to(ROOT)}: {getattr(node, 'name', 'module')}", docstring)
        for folder in ("gpupif", "kernels")
        for file in sorted((ROOT / folder).rglob("*.py"))
        for node in nodes_of(file)
        if isinstance(node, documented) and (docstring := ast.get_docstring(node)) is not None
    ]


def test_a_docstring_begins_with_a_verb_or_the_noun_that_it_describes():
    every = docstrings()
    assert len(every) > 3000
    assert [place for place, docstring in every if docstring.split()[0].rstrip(",:.") in FORBIDDEN] == []
