"""Public methods are documented: by themselves, or where what they implement is, which `help` then shows."""

from __future__ import annotations

import ast

from tests.helpers.checkout import ROOT


def documented_methods():
    """Of each class of the package, by name: its bases, and of its public methods whether they are documented."""
    classes = {}
    for file in (ROOT / "gpupif").rglob("*.py"):
        for node in ast.parse(file.read_text()).body:
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
