"""A canonical text of the objects of a reference: two states with one text behave alike in every future call.

The text follows every attribute and every cell from the roots that it is given, and numbers objects in the order in
which they are met, so identity counts, and addresses do not. It knows no system; what differs between states without
making a difference is normalised: a list's node numbers by their order, and why a pointer was made is left out.
An object of a kind that it does not know is an error: nothing is left out silently.
"""

from __future__ import annotations

import types
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from seriatim.host import Threads

SKIPPED = frozenset({"host", "cause", "target", "scheduler"})
"""Attributes that no future call depends on: the surroundings, and notes for the reader of a history."""


class UnknownObject(TypeError):
    """The text of a state would leave something out."""


def canonical(roots: Mapping[str, object]) -> str:
    """Return the text of everything that is reachable from `roots`, when no call is under way.

    Raises `UnknownObject` for an object that is neither plain data, nor a cell, nor of a class with attributes.
    """
    return _Text(roots).text()


class _Text:
    """One traversal. Node numbers are known only at the end of it, so the text is put together last."""

    def __init__(self, roots: Mapping[str, object]) -> None:
        self.numbers: dict[int, int] = {}
        self.alive: list[
            object
        ] = []  # what was met stays alive, so that its identity is not used again
        self.parts: list[Any] = []
        self.places: dict[str, set[int]] = defaultdict(set)
        for name, root in roots.items():
            self.parts.append(f"\n{name}=")
            self.visit(root)

    def text(self) -> str:
        """Return the text; a node's number in it is its rank among those of its list."""
        ranks = {
            name: {id: rank for rank, id in enumerate(sorted(ids))}
            for name, ids in self.places.items()
        }
        return "".join(
            part if isinstance(part, str) else f"#{ranks[part[0]][part[1]]}" for part in self.parts
        )

    def visit(self, value: Any) -> None:
        """Add one value to the text."""
        if value is None or isinstance(value, bool | int | float | str | bytes):
            self.parts.append(repr(value))
        elif isinstance(value, list | tuple):
            self._all("[]", value)
        elif isinstance(value, set | frozenset):
            self._all("{}", sorted(value))
        elif isinstance(value, Mapping):
            self._mapping(value)
        elif isinstance(value, types.FunctionType | types.MethodType | type | types.ModuleType):
            self.parts.append(getattr(value, "__qualname__", ""))
        elif not isinstance(value, Threads):
            self._object(value)

    def _all(self, brackets: str, values: Any) -> None:
        self.parts.append(brackets[0])
        for value in values:
            self.visit(value)
            self.parts.append(",")
        self.parts.append(brackets[1])

    def _mapping(self, value: Mapping[Any, Any]) -> None:
        self.parts.append("{")
        for key in sorted(value, key=repr):
            self.visit(key)
            self.parts.append(":")
            self.visit(value[key])
            self.parts.append(",")
        self.parts.append("}")

    def _object(self, value: Any) -> None:
        number = self.numbers.get(id(value))
        if number is not None:
            self.parts.append(f"@{number}")
            return
        self.numbers[id(value)] = len(self.numbers)
        self.alive.append(value)
        kind = type(value)
        if any(base.__module__ == Threads.__module__ for base in kind.__mro__):
            self._shared(value)
            return
        fields = list(_fields(value))
        if not fields and not hasattr(value, "__dict__") and not hasattr(kind, "__slots__"):
            raise UnknownObject(f"a state holds a {kind.__qualname__}, whose text is not defined")
        self.parts.append(f"{kind.__name__}(")
        list_name = getattr(value, "list_name", None)
        for name in fields:
            if name in SKIPPED:
                continue
            self.parts.append(f"{name}=")
            if name == "id" and list_name is not None:
                self.places[list_name].add(value.id)
                self.parts.append((list_name, value.id))
            else:
                self.visit(getattr(value, name))
            self.parts.append(";")
        self.parts.append(")")

    def _shared(self, value: Any) -> None:
        """Add what a cell holds, how many permits a semaphore has, and whether a lock is held."""
        if hasattr(value, "_value"):
            self.visit(value._value)
        elif hasattr(value, "inner"):
            self.parts.append("held" if value.inner.locked() else "free")
        else:
            raise UnknownObject(f"a state holds a {type(value).__qualname__}")


def _fields(value: object) -> Iterator[str]:
    """Yield the names of an object's attributes, in order."""
    names = set(getattr(value, "__dict__", ()))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names.update([slots] if isinstance(slots, str) else slots)
    yield from sorted(n for n in names if hasattr(value, n) and n != "__weakref__")
