"""What a test is given (`parametrize`, `given`, attributes that a fixture set), as each execution has it.

It was made outside of the exploration, of classes and functions of modules that the process has imported. A test has
modules of its own in each execution, so each value is copied, and what it refers to by name is looked up in these.
"""

from __future__ import annotations

import copy
import enum
import functools
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

Load = Callable[[str], Any]
"""A module of the execution by its name."""


def copied(value: Any, load: Load) -> Any:
    """A copy of a value of the process, with the classes, functions and modules of an execution.

    Raises what `copy.deepcopy` raises. What that does not copy, and `load` does not know, is the same object.
    """
    if _has_name(value):
        return _named(value, load)
    memo: dict[int, Any] = {}
    result = copy.deepcopy(value, memo)
    kept = memo.pop(id(memo), None)  # so that the objects keep their addresses
    made = {id(new) for address, new in memo.items() if id(new) != address}
    try:
        return _Copy(load, made).of(result)
    finally:
        del kept


def arguments(given: dict[str, Any], module: str, load: Load) -> dict[str, Any]:
    """Copies of the arguments of a test in some module, by name. A global of that module is that of the execution."""
    known = {
        id(value): name
        for name, value in vars(sys.modules.get(module, sys)).items()
        if not isinstance(value, str | bytes | int | float | complex | tuple | frozenset | None)
    }
    found = {
        name: getattr(load(module), known[id(value)]) if id(value) in known else copied(value, load)
        for name, value in given.items()
        if _has_name(value) or id(value) in known
    }
    return {**copied({n: v for n, v in given.items() if n not in found}, load), **found}


IN_C = {
    id(value): name
    for name, value in vars(threading).items()
    if getattr(value, "__module__", None) == "_thread"
}
"""By address: the names in `threading` of what it has from its module in C."""


def _has_name(value: Any) -> bool:
    return isinstance(value, type | types.FunctionType | types.ModuleType) or (
        isinstance(value, types.BuiltinFunctionType)
        and (isinstance(value.__self__, types.ModuleType) or value.__self__ is None)
    )


def _named(value: Any, load: Load) -> Any:
    """The same class, function or module of the execution; itself if no name of a module leads to it."""
    if id(value) in IN_C:
        return getattr(load("threading"), IN_C[id(value)])
    module = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    if module not in sys.modules or module == "builtins":
        return value
    path = [] if isinstance(value, types.ModuleType) else value.__qualname__.split(".")
    # In the place of some of the library there is another one while programs are explored.
    replaced = module.partition(".")[0] in sys.stdlib_module_names
    if not replaced and _at(sys.modules[module], path) is not value:
        return value
    found = _at(load(module), path)
    return value if found is None else found


def _at(module: Any, path: list[str]) -> Any:
    return functools.reduce(lambda found, part: getattr(found, part, None), path, module)


class _Copy:
    """What a copy refers to by name, put in its place; each object once."""

    def __init__(self, load: Load, made: set[int]) -> None:
        self.load = load
        self.made = made
        """Addresses of the objects that are copies; no other is changed."""
        self.done: dict[int, tuple[Any, Any]] = {}
        """By address: what stands in the place of an object, and the object."""

    def of(self, value: Any) -> Any:
        """What stands in the place of a value."""
        if id(value) not in self.done:
            self.done[id(value)] = value, value
            self.done[id(value)] = self._of(value), value
        return self.done[id(value)][0]

    def _of(self, value: Any) -> Any:
        if _has_name(value):
            return _named(value, self.load)
        if isinstance(value, enum.Enum):
            return getattr(_named(type(value), self.load), str(value.name), value)
        if isinstance(value, types.MethodType):
            return types.MethodType(self.of(value.__func__), self.of(value.__self__))
        if type(value) is functools.partial:
            return functools.partial(
                self.of(value.func), *self.of(value.args), **self.of(value.keywords)
            )
        if isinstance(value, tuple | frozenset):
            return self._of_elements(value)
        if id(value) in self.made:
            self._change(value)
        return value

    def _of_elements(self, value: Any) -> Any:
        """A tuple or frozenset: made anew if one of its elements is another one, or its class."""
        elements = [self.of(element) for element in value]
        kind = _named(type(value), self.load)
        if kind is type(value) and all(map(lambda new, old: new is old, elements, value)):
            return value
        made = (
            kind.__new__(kind, *elements)
            if hasattr(kind, "_fields")
            else kind.__new__(kind, elements)
        )
        for name, held in getattr(value, "__dict__", {}).items():
            object.__setattr__(made, name, self.of(held))
        return made

    def _change(self, value: Any) -> None:
        if isinstance(value, list):
            list.__setitem__(value, slice(None), [self.of(element) for element in value])
        elif isinstance(value, dict):
            pairs = [(self.of(key), self.of(held)) for key, held in value.items()]
            dict.clear(value)
            dict.update(value, pairs)
        elif isinstance(value, set):
            elements = [self.of(element) for element in value]
            set.clear(value)
            set.update(value, elements)
        for name in [*getattr(value, "__dict__", ()), *_slots(type(value))]:
            held = getattr(value, name, None)
            if self.of(held) is not held:
                object.__setattr__(value, name, self.of(held))
        kind = _named(type(value), self.load)
        if kind is not type(value):
            object.__setattr__(value, "__class__", kind)


def _slots(kind: type) -> list[str]:
    """The attributes that objects of a class of Python have without a dictionary."""
    return [
        name
        for base in kind.__mro__
        if "__slots__" in vars(base)
        for name, held in vars(base).items()
        if isinstance(held, types.MemberDescriptorType)
    ]
