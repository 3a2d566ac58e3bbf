"""Docstrings: public methods have one, or the method that they implement has; first words say the subject."""

from __future__ import annotations

import ast
import io
import re
import tokenize

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


def test_attributes_of_classes_that_comments_and_docstrings_name_exist():
    """Check names in backquotes such as `Class.method`, of classes of the package."""
    nodes = [node for file in sorted((ROOT / "gpupif").rglob("*.py")) for node in nodes_of(file)]
    bases, attributes = {"ABC": (), "NamedTuple": ()}, {"ABC": set(), "NamedTuple": set()}
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            own = attributes.setdefault(node.name, set())
            bases.setdefault(node.name, set()).update(ast.unparse(base).split("[")[0] for base in node.bases)
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    own.add(inner.name)
                elif isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Store):
                    own.add(inner.id if isinstance(inner, ast.Name) else inner.attr)

    def lacks(name, attribute):
        above = bases.get(name, {"another library"})
        return attribute not in attributes.get(name, {attribute}) and all(lacks(base, attribute) for base in above)

    said = [*docstrings()]
    for folder in ("gpupif", "kernels"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            tokens = tokenize.generate_tokens(io.StringIO(file.read_text()).readline)
            said += [(str(file.relative_to(ROOT)), own.string) for own in tokens if own.type == tokenize.COMMENT]
    named = [(place, *own) for place, text in said for own in re.findall(r"`(\w+)\.(\w+)[^`]*`", text)]
    assert len([own for own in named if own[1] in attributes]) > 100
    assert [own for own in named if lacks(*own[1:])] == []
