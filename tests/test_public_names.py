"""The public names: all there, described, and as DESIGN and the docstrings say."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import re
from pathlib import Path

import pytest

import lmclient
from lmclient import errors

ERRORS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and value.__module__ == errors.__name__
]


def declared() -> dict[str, str]:
    """What the package declares for type checkers: name → module."""
    tree = ast.parse(Path(lmclient.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: node.module or ""
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_what_type_checkers_see_is_what_there_is() -> None:
    assert sorted(declared()) == sorted(lmclient.__all__)


@pytest.mark.parametrize("name", lmclient.__all__)
def test_a_public_name_comes_from_where_type_checkers_think(name: str) -> None:
    module = __import__(declared()[name], fromlist=[name])
    assert getattr(lmclient, name) is getattr(module, name)


@pytest.mark.parametrize("name", lmclient.__all__)
def test_a_public_name_is_described(name: str) -> None:
    value = getattr(lmclient, name)
    if not inspect.isclass(value) and not inspect.isfunction(value):
        source = Path(__import__(declared()[name], fromlist=[name]).__file__ or "").read_text()
        assert re.search(rf'^{name}\b[^\n]* = .*\n"""', source, re.MULTILINE), "a string below the assignment"
        return
    assert value.__doc__
    assert not value.__doc__.startswith(f"{name}(")


@pytest.mark.parametrize(
    "name", [name for name in lmclient.__all__ if inspect.isclass(getattr(lmclient, name))]
)
def test_the_public_methods_of_a_class_are_described(name: str) -> None:
    cls = getattr(lmclient, name)
    members = [(attribute, value) for attribute, value in vars(cls).items() if not attribute.startswith("_")]
    bare = [
        attribute
        for attribute, value in members
        if callable(getattr(value, "__func__", value)) and not isinstance(value, type)
        if not inspect.getdoc(getattr(cls, attribute))
    ]
    assert bare == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = lmclient.Nothing  # type: ignore[attr-defined]  # that is the point


def test_the_names_are_listed_by_dir() -> None:
    assert set(lmclient.__all__) <= set(dir(lmclient))


# Errors


def test_every_error_is_public() -> None:
    assert {error.__name__ for error in ERRORS} <= set(lmclient.__all__)


def drawn() -> dict[str, str]:
    """The tree in the docstring of the module: error → its parent."""
    parents: list[str] = []
    tree = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ([│├└─ ]*)([A-Z]\w+)", line)
        if match is None:
            continue
        depth = len(match[1]) // 4
        parents[depth:] = [match[2]]
        tree[match[2]] = parents[depth - 1] if depth else "Exception"
    return tree


def test_the_tree_in_the_docstring_is_the_real_one() -> None:
    assert set(drawn()) == {error.__name__ for error in ERRORS}
    for error in ERRORS:
        assert drawn()[error.__name__] in [base.__name__ for base in error.__mro__[1:]]
        first = drawn()[error.__name__]
        assert first in [base.__name__ for base in error.__bases__] or len(error.__bases__) > 1


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_survives_pickling_and_copying(error: type[errors.LMClientError]) -> None:
    made = error("what happened")
    made.partial = lmclient.Completion(text="so far")
    if isinstance(made, errors.ProviderError):
        made.status, made.retry_after = 429, 1.5
    for twin in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert (type(twin), str(twin), vars(twin)) == (error, "what happened", vars(made))


def test_a_timeout_is_also_the_builtin_one() -> None:
    assert issubclass(errors.TimeoutError, TimeoutError)
