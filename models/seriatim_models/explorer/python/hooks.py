"""What the rewritten code knows under names of its own, and what it makes of `class`, `id` and failed assertions."""

from __future__ import annotations

import builtins
import functools
import types
from typing import Any

from seriatim_models.explorer.model.guard import program_text
from seriatim_models.explorer.python.accesses import (
    MARK,
    OF_RAISE,
    RAISED,
    cell,
    cell_later,
    cell_set,
    del_,
    get,
    library,
    made,
    now,
    record_of,
    scope,
    set_,
    setitem,
)
from seriatim_models.explorer.python.called_back import with_lookups
from seriatim_models.explorer.python.calls import call, shown
from seriatim_models.explorer.python.class_checks import HOOK, observe_hook
from seriatim_models.explorer.python.classes import class_made
from seriatim_models.explorer.python.containers import (
    binary,
    compare,
    delitem,
    formatted,
    getitem,
    inplace,
    managed,
    read,
    runs_text,
    spread,
)
from seriatim_models.explorer.python.execution import LIFETIMES, PythonExecution
from seriatim_models.explorer.python.iterations import Scoped, ScopedAsync, for_
from seriatim_models.explorer.python.matching import match_class, match_mapping, match_sequence
from seriatim_models.explorer.python.places import (
    CLASS,
    CONTAINER,
    INSTANCE,
    OF_EXECUTION,
    OPAQUE,
    keeps_attributes,
    kind_of,
)
from seriatim_models.explorer.python.waiting_loops import Loop, endless, going_round


def stable_hash(obj: Any) -> int:
    """Hash by name and not by address an object that has no hash of its own, so that sets repeat themselves."""
    ex = now.execution
    if ex is None or ex.acting is None:
        return object.__hash__(obj)
    record = record_of(ex, obj, 0, True)
    return hash((record.maker, record.number))


def stable_id(obj: Any) -> int:
    """`id` by name where an object has one, or may get one: it stays what it is, also in a class's own `__init__`."""
    ex = now.execution
    record = None if ex is None else ex.records.get(id(obj))
    if record is None:
        kind = kind_of(type(obj))
        named = kind in (CONTAINER, INSTANCE, OPAQUE, CLASS) or keeps_attributes(type(obj))
        if ex is None or ex.acting is None or not named:
            return id(obj)
        record = record_of(ex, obj, 0, kind == CLASS)
    maker = 1 << 16 if record.maker == OF_EXECUTION else record.maker
    return (maker << 32) + 16 * record.number


def give_hash(kind: Any) -> None:
    """Give a class without a hash of its own the stable one, without a word to its metaclass.

    Not one whose objects are classes, which are looked up by their hash wherever something is called or named.
    """
    if not isinstance(kind, type) or issubclass(kind, type):
        return
    if getattr(kind, "__hash__", None) is object.__hash__:
        type.__setattr__(kind, "__hash__", stable_hash)


def take_hash(kind: Any) -> None:
    """Take it away again."""
    if isinstance(kind, type) and vars(kind).get("__hash__") is stable_hash:
        type.__delattr__(kind, "__hash__")


def build_class(function: Any, name: str, /, *bases: Any, **keywords: Any) -> Any:
    """`class name(*bases)`: its objects have stable hashes, unless it says otherwise."""
    ex = now.execution
    if ex is None or len(ex.heads) < 2:
        kind = builtins.__build_class__(function, name, *bases, **keywords)
    else:
        kind = class_made(
            ex, bases, 0, lambda: builtins.__build_class__(function, name, *bases, **keywords)
        )
    return observed_class(kind, function)


def observed_class(kind: Any, body: Any = None) -> Any:
    """A class that the program has made, by a `class` statement with this body or by a call: it is observed now."""
    if not isinstance(kind, type):
        return kind  # of a metaclass that makes something else
    ex = now.execution
    give_hash(kind)
    for special in ("__eq__", "__hash__"):
        own = vars(kind).get(special)
        if isinstance(own, types.FunctionType) and all(own.__globals__ is not g for g in OF_HOOKS):
            type.__setattr__(kind, special, with_lookups(own, special))
    for special, value in list(vars(kind).items()):
        if str(special).startswith("__") and _bound_by_c(getattr(value, "__func__", value)):
            type.__setattr__(kind, special, _announcing(getattr(value, "__func__", value)))
    if ex is not None and HOOK in vars(kind):
        observe_hook(ex, kind)
    finalizer = vars(kind).get("__del__")
    code = getattr(finalizer if body is None else body, "__code__", None)
    if (
        finalizer is not None
        and ex is not None
        and (code is None or program_text(code.co_filename))
    ):
        _finalizing(ex, kind)
    return kind


OF_HOOKS = (globals(), with_lookups.__globals__)
"""Where the special methods are at home that a class gets here."""


FOUND_BY_THE_COLLECTOR = 1 << 14
"""The flag of a type, Py_TPFLAGS_HAVE_GC, whose objects `gc` knows: not of one with empty slots."""


def _finalizing(ex: PythonExecution, kind: type) -> None:
    """Note that the objects of a class show when they die. Lifetimes are followed once there was such an object.

    It dies, and calls what stands here, or it is there at the end of the execution, where `lifetimes` looks for it.
    """
    finalizer = vars(kind)["__del__"]
    findable = kind.__flags__ & FOUND_BY_THE_COLLECTOR and type(finalizer) is types.FunctionType
    if LIFETIMES in ex.search.promoted or not findable:
        ex.need(LIFETIMES, 0)
        return
    ex.finalizers.append(kind)

    @functools.wraps(finalizer)
    def dying(self: object) -> object:
        ex.need(LIFETIMES, 0)
        return finalizer(self)

    type.__setattr__(kind, "__del__", dying)


def _bound_by_c(method: Any) -> bool:
    """Whether a special method is one of C with an object of its own: `__getitem__ = table.get`."""
    return isinstance(
        method, types.BuiltinFunctionType | types.MethodWrapperType
    ) and not isinstance(method.__self__, type | types.ModuleType | None)


def _announcing(method: Any) -> Any:
    """The same as a function of Python: C code calls it by its class, where no call is announced."""

    def announced(*args: Any, **kwargs: Any) -> Any:
        return call(method, 0, *args, **kwargs)

    return staticmethod(announced)


def raised(error: Any, site: int) -> Any:
    """What `raise` raises: its traceback, its context and its cause change, if somebody reads them."""
    ex = now.execution
    thread = None if ex is None else ex.current
    if ex is None or thread is None or RAISED not in ex.search.promoted:
        return error
    if isinstance(error, BaseException):
        record = record_of(ex, error, site)
        ex.touch_all(thread, [(record, name, True) for name in OF_RAISE], site)
    return error


def loop(site: int, *names: str) -> Loop | None:
    """A loop begins, which binds these variables."""
    ex = now.execution
    return None if ex is None or ex.current is None else Loop(ex, site, names)


def loop_of_task(site: int, *names: str) -> Loop | None:
    """As `loop`, of one that awaits."""
    begun = loop(site, *names)
    if begun is not None:
        begun.awaits = True
    return begun


def decorated(decorator: Any, site: int) -> Any:
    """A decorator of a class: one that is not observed (of `attrs`, say) does not see the hash of `build_class`."""
    if MARK in getattr(decorator, "__globals__", ()):
        return decorator

    def applied(kind: Any) -> Any:
        take_hash(kind)
        made = decorator(kind)
        give_hash(made)
        return made

    return applied


def assertion(text: str, *sides: Any) -> str:
    """What a failed assertion says."""
    if not sides:
        return f"assert {text}"
    values = " and ".join(_short(side) for side in sides)
    return f"assert {text} (the sides were {values})"


def _short(value: Any) -> str:
    text = repr(value)
    if " at 0x" in text:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


HOOKS: dict[str, Any] = {
    f"__s_{name}__": function
    for name, function in {
        "get": get, "set": set_, "del": del_, "getitem": getitem, "setitem": setitem, "delitem": delitem,
        "cell": cell, "cell_later": cell_later, "cell_set": cell_set,
        "scope": scope, "call": call, "binary": binary, "inplace": inplace,
        "compare": compare, "iter": for_, "read": read,
        "spread": spread, "managed": managed, "format": formatted, "made": made,
        "slice": slice, "decorated": decorated, "text": runs_text, "assertion": assertion,
        "match_class": match_class, "match_mapping": match_mapping, "match_sequence": match_sequence,
        "loop": loop, "loop_of_task": loop_of_task,
        "round": going_round, "endless": endless, "scoped": Scoped, "scoped_async": ScopedAsync,
        "raised": raised, "shown": shown, "with_lookups": lambda method: with_lookups(method, method.__name__),
    }.items()
}  # fmt: skip
"""The names under which rewritten code knows these functions."""

library.observed_class = observed_class
