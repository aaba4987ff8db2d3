"""What threads share of a class: its attributes, the classes that are made from it, and which objects are of it.

C code reads it where nothing is announced (`dir`, `vars`, `__subclasses__`, `type`), and so does Python that is not
observed.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.python.accesses import (
    CLASS_CHANGES,
    class_looked_into,
    class_places,
    library,
    record_of,
    running,
    touch_contents,
)
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.places import CLASS, HEAP_TYPE, INSTANCE, kind_of
from seriatim_models.explorer.python.rewrite import HOOKED

SUBCLASSES = "subclasses are looked at"
"""What is promoted when a program with threads calls `__subclasses__`: from then on a new class is an access to it."""


def subclasses(kind: type, write: bool, site: int) -> None:
    """Announce that it is read which classes are made from one, or that another one is made."""
    ex, thread = running()
    if ex is None or thread is None or len(ex.heads) < 2:
        return
    if write and SUBCLASSES not in ex.search.promoted:
        return
    if ex.need(SUBCLASSES, site) and kind.__flags__ & HEAP_TYPE:
        ex.touch(thread, record_of(ex, kind, site, True), "__subclasses__", write, site)


def class_made(ex: PythonExecution, bases: Any, site: int, make: Callable[[], Any]) -> Any:
    """A class that is made from others while there are threads; its body and `__init_subclass__` may have steps."""
    if len(ex.heads) < 2 or ex.current is None:
        return make()
    for each in bases:
        if isinstance(each, type):
            subclasses(each, True, site)
    made = make()
    if isinstance(made, type) and id(made) not in ex.records:
        ex.record(made, made.__qualname__, True)
    return made


SAID_OF_FUNCTIONS = (
    "__doc__", "__name__", "__qualname__", "__module__", "__wrapped__", "__signature__", "__annotations__",
    "__defaults__",
)  # fmt: skip
"""Attributes of a function that `inspect` reads."""


def looked_over(ex: PythonExecution, thread: Thread, obj: Any, site: int) -> None:
    """Announce what Python that is not observed may read of a class, or `inspect` of a function."""
    accesses: list[Any] = []
    if kind_of(type(obj)) == CLASS:
        begin = "class attribute "
        promoted = [p.removeprefix(begin) for p in ex.search.promoted if p.startswith(begin)]
        accesses = [place for name in promoted for place in class_places(ex, obj, name, site)]
    elif isinstance(obj, types.FunctionType):
        record = record_of(ex, obj, site)
        accesses = [(record, name, False) for name in SAID_OF_FUNCTIONS]
    if accesses:
        ex.touch_all(thread, accesses, site)


def kind_shown(ex: PythonExecution, obj: Any, site: int) -> type:
    """`type(obj)`, which a program may change."""
    if ex.rare and CLASS_CHANGES in ex.search.promoted and ex.current is not None:
        ex.touch(ex.current, record_of(ex, obj, site), "__class__", False, site)
    return type(obj)


def names_of(site: int, obj: Any) -> list[str]:
    """Which attributes an object has, of its own and by its class."""
    ex, thread = running()
    if ex is None or thread is None:
        return dir(obj)
    kind = kind_of(type(obj))
    places = class_looked_into(ex, obj if kind == CLASS else type(obj), site, bases=True)
    if places:
        ex.touch_all(thread, [place for _, place in places], site)
    if kind == INSTANCE and isinstance(getattr(obj, "__dict__", None), dict):
        len(library.attribute_dict(obj, site))  # announces that it is read which there are
    elif type(obj) is types.ModuleType:
        touch_contents(vars(obj), False, site)
        return [name for name in dir(obj) if not name.startswith(HOOKED)]
    return dir(obj)
