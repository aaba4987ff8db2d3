"""`isinstance` and `issubclass`: what they read besides the class itself.

An abstract class keeps what its `__subclasshook__` has answered for a class, and asks it only once; so a check reads
what is kept, and behind the hook it is written. A protocol that may be checked looks for its attributes in the object.
Methods of a metaclass that are Python are observed as all others.
"""

from __future__ import annotations

import abc
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from seriatim_models.explorer.python.accesses import before_load, get, library, member, running
from seriatim_models.explorer.python.callers import site_of_caller
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.places import CONTENTS, OF_EXECUTION, ObjectRecord

HOOK = "__subclasshook__"
SEVERAL = (tuple, types.UnionType)
STATIC = sys.version_info >= (3, 12)
"""Whether a protocol looks for attributes without calling a property or a `__getattr__`."""
_ABSENT = object()
_PROTOCOL: Any = type(typing.Protocol)


def is_instance(obj: Any, kinds: Any, /) -> bool:
    """`isinstance` of observed code."""
    if type(kinds) is type:
        return isinstance(obj, kinds)
    if type(kinds) in SEVERAL:
        return any(is_instance(obj, kind) for kind in getattr(kinds, "__args__", kinds))
    ex, thread = running()
    if ex is not None and thread is not None and type(obj) is not kinds and _is_abstract(kinds):
        if _is_checked_protocol(kinds):
            return _has_all(obj, kinds)
        reads_answers(ex)
    return isinstance(obj, kinds)


def is_subclass(kind: Any, kinds: Any, /) -> bool:
    """`issubclass` of observed code."""
    if type(kinds) is type:
        return issubclass(kind, kinds)
    if type(kinds) in SEVERAL:
        return any(is_subclass(kind, each) for each in getattr(kinds, "__args__", kinds))
    ex, thread = running()
    if ex is not None and thread is not None and _is_abstract(kinds):
        reads_answers(ex)
    return issubclass(kind, kinds)


def _is_abstract(kind: Any) -> bool:
    return isinstance(type(kind), type) and issubclass(type(kind), abc.ABCMeta)


# -- what abstract classes keep ------------------------------------------------------------------------------------


def observe_hook(ex: PythonExecution, kind: Any) -> None:
    """Announce behind the `__subclasshook__` of a new class that what it has answered is about to be kept."""
    own = vars(kind).get(HOOK)
    if not _is_abstract(kind) or not isinstance(own, classmethod):
        return
    if ex.answers is None:
        ex.answers = ObjectRecord(ex, f"answers of {HOOK}", OF_EXECUTION, 5, True, None)
    type.__setattr__(kind, HOOK, classmethod(_announcing(own.__func__)))


def _announcing(hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook)
    def asked(*args: Any) -> Any:
        answer = hook(*args)
        ex, thread = running()
        if ex is not None and thread is not None and ex.answers is not None:
            ex.touch(thread, ex.answers, CONTENTS, True, site_of_caller())
        return answer

    return asked


def reads_answers(ex: PythonExecution) -> None:
    """Announce that it is read what abstract classes have kept of the answers of a hook."""
    thread = ex.current
    if ex.answers is not None and thread is not None:
        ex.touch(thread, ex.answers, CONTENTS, False, site_of_caller())


# -- protocols -----------------------------------------------------------------------------------------------------


def _is_checked_protocol(kind: Any) -> bool:
    """Whether a class is a protocol whose check, that of `typing`, looks into objects."""
    return (
        isinstance(kind, _PROTOCOL)
        and type(kind).__instancecheck__ is _PROTOCOL.__instancecheck__
        and bool(getattr(kind, "_is_protocol", False))
        and bool(getattr(kind, "_is_runtime_protocol", False))
    )


def _has_all(obj: Any, kind: Any) -> bool:
    """`_ProtocolMeta.__instancecheck__`: attributes are looked for one after the other, each in a step of its own."""
    try:
        if issubclass(obj.__class__, kind):
            return True
    except TypeError:
        pass  # a protocol with attributes that are no methods cannot be asked
    names = getattr(kind, "__protocol_attrs__", None)
    if names is None:
        names = typing._get_protocol_attrs(kind)  # type: ignore[attr-defined]  # up to 3.11
    site = site_of_caller()
    if all(_has(obj, name, kind, site) for name in sorted(names)):
        return True
    return bool(abc.ABCMeta.__instancecheck__(kind, obj))


def _has(obj: Any, name: str, kind: Any, site: int) -> bool:
    ex, thread = running()
    value: Any
    if STATIC and ex is not None and thread is not None:
        before_load(ex, thread, obj, name, member(type(obj), name), site)
        value = inspect.getattr_static(obj, name, _ABSENT)
    else:
        try:
            value = get(obj, name, site)
        except AttributeError:
            value = _ABSENT
    if value is _ABSENT:
        return False
    return value is not None or not callable(getattr(kind, name, None))


library.reads_answers = reads_answers
