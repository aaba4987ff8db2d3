# mypy: disable-error-code="call-overload, call-arg, arg-type, operator, attr-defined, no-any-return"
"""Right programs over what CPython's own tests of the language and the library look at: each is ok or says nothing."""

from __future__ import annotations

import abc
import collections
import collections.abc
import contextlib
import copy
import dataclasses
import enum
import io
import pickle
import sys
import threading
import types
import typing
import unittest
import weakref
from collections.abc import Callable
from typing import Any, ClassVar


def both(body: Callable[[], object]) -> None:
    threads = [threading.Thread(target=body) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def said(body: Callable[[], object]) -> str:
    """What an error says."""
    try:
        body()
    except TypeError as error:
        return str(error)
    return ""


# -- the module of the caller -----------------------------------------------------------------------------------------


class Meta(type):
    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
        made = super().__new__(mcs, name, bases, space)
        made.seen = made.__module__
        return made


class PlainMeta(type):
    pass


class Registering:
    kinds: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls) -> None:
        cls.kinds[cls.__name__] = cls.__module__


def a_class_that_is_made_by_a_call_is_of_the_module_of_the_caller() -> None:
    both(lambda: None)
    made = [
        type("A", (), {}),
        Meta("B", (), {}),
        PlainMeta("C", (), {}),
        type("D", (Registering,), {}),
        type.__new__(type, "E", (), {}),
        abc.ABCMeta("F", (), {}),
    ]
    assert [kind.__module__ for kind in made] == [*[__name__] * 5, "abc"]
    assert made[1].seen == __name__
    assert Registering.kinds["D"] == __name__
    assert type("G", (), {"__module__": "there"}).__module__ == "there"


def what_asks_for_its_caller_finds_the_program() -> None:
    both(lambda: None)
    made: list[Any] = [
        enum.Enum("Colour", "RED GREEN"),
        enum.IntFlag("Right", "READ WRITE"),
        collections.namedtuple("Point", "x y"),
        typing.NamedTuple("Typed", [("x", int)]),
        typing.TypedDict("Mapping", {"x": int}),
        typing.NewType("Number", int),
        typing.TypeVar("T"),
        typing.ParamSpec("P"),
    ]
    assert [each.__module__ for each in made] == [__name__] * len(made)
    assert dataclasses.make_dataclass("Made", ["x"]).__module__ in ("types", __name__)
    assert types.new_class("New").__module__ == "types"


def an_object_of_a_class_that_is_made_by_a_call_is_finalized() -> None:
    died: list[int] = []
    kind = type("Kind", (), {"number": 1, "__del__": lambda self: died.append(self.number)})
    held = [kind(), kind()]
    held[1].number = 2
    both(lambda: held[1].number)
    held.pop()
    assert died == [2]


# -- copies -----------------------------------------------------------------------------------------------------------


class Node:
    def __init__(self, name: str) -> None:
        self.name = name
        self.peers: list[Node] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        if id(self) in memo:
            return memo[id(self)]
        made = Node(self.name)
        memo[id(self)] = made
        made.peers = copy.deepcopy(self.peers, memo)
        return made


def a_copy_remembers_by_id() -> None:
    both(lambda: None)
    node = Node("a")
    node.peers += [node, Node("b")]
    node.peers[1].peers.append(node)
    made = copy.deepcopy([node, node])
    assert made[0] is made[1] is made[0].peers[0] is made[0].peers[1].peers[0]
    assert made[0] is not node
    memo: dict[int, Any] = {}
    copied = copy.deepcopy(node.peers, memo)
    assert memo[id(node.peers)] is copied
    assert memo[id(node)] is copied[0]
    first = object()
    assert copy.deepcopy([first, Node("c")], {id(first): None})[0] is None
    kept = [[1]]
    memo = {}
    copy.deepcopy(kept, memo)
    assert memo[id(memo)][0] is kept[0]


class Plain:
    pass


def weak_references_are_copied_as_they_are() -> None:
    both(lambda: None)
    obj = Plain()
    ref = weakref.ref(obj)
    assert copy.copy(ref) is ref
    assert copy.deepcopy([ref])[0] is ref
    assert isinstance(ref, weakref.ref)


def weak_dicts_are_copied() -> None:
    both(lambda: None)
    keys = [Plain(), Plain()]
    by_key = weakref.WeakKeyDictionary(zip(keys, [[1], [2]], strict=True))
    shallow, deep = copy.copy(by_key), copy.deepcopy(by_key)
    assert len(shallow) == len(deep) == 2
    assert shallow[keys[0]] is by_key[keys[0]]
    assert deep[keys[0]] == [1]
    assert deep[keys[0]] is not by_key[keys[0]]
    by_value = weakref.WeakValueDictionary(zip("ab", keys, strict=True))
    assert dict(copy.copy(by_value)) == dict(copy.deepcopy(by_value)) == dict(by_value)
    keys.pop()
    assert len(by_key) == len(by_value) == len(shallow) == len(deep) == 1


def weak_containers_are_what_they_are_otherwise() -> None:
    both(lambda: None)
    made: list[Any] = [
        weakref.WeakSet(),
        weakref.WeakKeyDictionary(),
        weakref.WeakValueDictionary(),
        collections.Counter(),
        collections.ChainMap(),
        collections.UserDict(),
        collections.UserList(),
    ]
    kinds = [collections.abc.MutableSet, *[collections.abc.MutableMapping] * 5]
    kinds.append(collections.abc.MutableSequence)
    assert all(map(isinstance, made, kinds))
    assert all(map(issubclass, map(type, made), kinds))


def withheld_proxy_of_what_has_died() -> None:
    held = [Node("a")]
    proxy = weakref.proxy(held[0])
    both(lambda: held[0].name)
    held.pop()
    try:
        found = proxy.name
    except ReferenceError:
        return
    raise AssertionError(found)


# -- what a test puts around -------------------------------------------------------------------------------------------


def what_is_redirected_is_the_output_of_the_program() -> None:
    both(lambda: None)
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdout, sys.stderr
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        print("to out")
        sys.stdout.write("written\n")
        print("to err", file=sys.stderr)
        with contextlib.redirect_stdout(err):
            print("in between")
    assert (sys.stdout, sys.stderr) == before
    assert out.getvalue() == "to out\nwritten\n"
    assert err.getvalue() == "to err\nin between\n"


class Case(unittest.TestCase):
    @unittest.expectedFailure
    def fails(self) -> None:
        both(lambda: None)
        self.fail("it is known to")

    @unittest.expectedFailure
    def does_not_fail(self) -> None:
        both(lambda: None)


def read_lines(text: str) -> int:
    return len(text.splitlines())


def withheld_pickle_of_what_is_found_by_its_name() -> None:
    both(lambda: None)
    pickle.dumps(map(read_lines, ["a"]))


# -- patterns ---------------------------------------------------------------------------------------------------------


class Unread(collections.abc.Sequence[Any]):
    def __getitem__(self, at: Any) -> Any:
        raise AssertionError(at)

    def __len__(self) -> int:
        return 0


class Unmeasured:
    pass


collections.abc.Sequence.register(Unmeasured)


def a_pattern_asks_for_no_more_than_it_needs() -> None:
    both(lambda: None)
    match Unread():
        case [_]:
            raise AssertionError
        case []:
            found = True
    assert found
    match Unmeasured():
        case [*_]:
            found = False
    assert not found


# -- what errors say --------------------------------------------------------------------------------------------------


def a_wrong_call_of_a_builtin_says_what_it_says_otherwise() -> None:
    both(lambda: None)
    wrong: list[Any] = [
        lambda: getattr(),
        lambda: getattr(1),
        lambda: getattr(1, 2),
        lambda: getattr(1, "a", 2, 3),
        lambda: setattr(1),
        lambda: delattr(1),
        lambda: hasattr(1),
        lambda: hasattr(1, 2),
        lambda: next(),
        lambda: next(1),
        lambda: next(x=1),
        lambda: vars(1, 2),
        lambda: len(),
        lambda: len(1),
        lambda: dir(1, 2),
        lambda: callable(),
    ]
    texts = [said(body) for body in wrong]
    assert texts == WRONG, [t for t, w in zip(texts, WRONG, strict=True) if t != w]


WRONG = [
    "getattr expected at least 2 arguments, got 0",
    "getattr expected at least 2 arguments, got 1",
    "attribute name must be string, not 'int'",
    "getattr expected at most 3 arguments, got 4",
    "setattr expected 3 arguments, got 1",
    "delattr expected 2 arguments, got 1",
    "hasattr expected 2 arguments, got 1",
    "attribute name must be string, not 'int'",
    "next expected at least 1 argument, got 0",
    "'int' object is not an iterator",
    "next() takes no keyword arguments",
    "vars expected at most 1 argument, got 2",
    "len() takes exactly one argument (0 given)",
    "object of type 'int' has no len()",
    "dir expected at most 1 argument, got 2",
    "callable() takes exactly one argument (0 given)",
]
