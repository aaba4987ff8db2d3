"""What the rewritten code does with containers: subscripts, iteration, operators, comparisons, `with`."""

from __future__ import annotations

import collections
import operator
import types
from typing import Any

from seriatim_models.explorer.python.accesses import (
    STATEFUL,
    before_comparison,
    contents,
    library,
    now,
    result_of,
    running,
    shows,
    touch_all,
    touch_contents,
    unobserved_method,
)
from seriatim_models.explorer.python.called_back import (
    compared_by_python,
    looked_up,
    made_if_missing,
    python_compares,
    runs_python,
    searched,
)
from seriatim_models.explorer.python.iterations import CalledByC, filling
from seriatim_models.explorer.python.places import (
    CONTAINER,
    INSTANCE,
    OPAQUE,
    TUPLE,
    VIEW,
    kind_of,
    where,
)


def formatted(value: Any, site: int) -> Any:
    """A value that is about to be shown in an f-string."""
    touch_all(False, site, value, deep=True)
    shows(value, site)
    return read(value, site) if kind_of(type(value)) == INSTANCE else value


def read(value: Any, site: int) -> Any:
    """A value whose contents are read at once: a condition, an f-string, a starred argument, an unpacking."""
    what = kind_of(type(value))
    if what in (CONTAINER, VIEW):
        touch_contents(value, False, site)
    elif what == TUPLE:
        touch_all(False, site, value)
    elif what == OPAQUE and any(
        hasattr(type(value), name) for name in ("__next__", "__len__", "__bool__")
    ):
        touch_contents(value, True, site)
    elif what == INSTANCE:
        for method in ("__len__", "__bool__", "__iter__", "__str__"):
            unobserved_method(value, method, site)
    return value


def spread(value: Any, site: int) -> Any:
    """What `*a` or an unpacking goes through."""
    if type(value) is types.GeneratorType:
        return library.resumptions(value, site)
    return read(value, site)


def getitem(obj: Any, key: Any, site: int) -> Any:
    """`obj[key]`."""
    what = kind_of(type(obj))
    if what in (CONTAINER, OPAQUE, VIEW):
        # A defaultdict makes what is missing; whether it is, others may change until the step is taken.
        missing = isinstance(obj, collections.defaultdict) and obj.default_factory is not None
        if missing and type(obj) is collections.defaultdict and runs_python(obj.default_factory):
            return made_if_missing(obj, key, site)
        if missing:
            before_default(obj, site)
        else:
            touch_contents(obj, False, site)
        if python_compares(key) and not missing:
            return looked_up(obj, False, site, lambda: operator.getitem(obj, key))
        if missing and now.execution is not None and key not in obj:
            return result_of(now.execution, operator.getitem(obj, key), site)
        if what == OPAQUE and type(key) in (slice, tuple) and now.execution is not None:
            return result_of(now.execution, operator.getitem(obj, key), site, (obj,))
    elif what == INSTANCE:
        unobserved_method(obj, "__getitem__", site)
    # Not `obj[key]`: the interpreter learns to call a `__getitem__` of Python without a reference of its own to `obj`,
    # when it has done so often enough, and lifetimes are seen by the number of references.
    return operator.getitem(obj, key)


def before_default(obj: collections.defaultdict[Any, Any], site: int) -> None:
    """Announce an item that C makes where it is missing, perhaps from a container: `defaultdict(ids.pop)`."""
    ex, thread = running()
    if ex is not None and thread is not None:
        source = CalledByC(obj.default_factory, site)
        accesses = contents(ex, source.container, source.writes, site)
        ex.touch_all(thread, [*contents(ex, obj, True, site), *accesses], site)


def runs_text(text: Any, site: int) -> Any:
    """`eval` and `exec`: what the text does is not seen."""
    ex = now.execution
    if ex is not None:
        ex.search.unseen[f"code that is made of a text runs at {where(site)}"] = None
        ex.changes(ex.current)
    return text


def delitem(obj: Any, key: Any, site: int) -> None:
    """`del obj[key]`."""
    touch_contents(obj, True, site)
    if kind_of(type(obj)) == INSTANCE:
        unobserved_method(obj, "__delitem__", site)
    if python_compares(key):
        looked_up(obj, True, site, lambda: operator.delitem(obj, key))
    else:
        del obj[key]


class Managed:
    """A context manager of C: it is entered and left by operations of its own. A file is written when it is closed."""

    __s_native__ = True

    def __init__(self, manager: Any, site: int) -> None:
        self.manager = manager
        self.site = site

    def __enter__(self) -> Any:
        touch_contents(self.manager, True, self.site)
        return self.manager.__enter__()

    def __exit__(self, *raised: Any) -> Any:
        touch_contents(self.manager, True, self.site)
        return self.manager.__exit__(*raised)


def managed(manager: Any, site: int) -> Any:
    """What a `with` enters."""
    what = kind_of(type(manager))
    if what == OPAQUE:
        return Managed(manager, site)
    if what == INSTANCE:
        unobserved_method(manager, "__exit__", site)
    return manager


COMBINED = (*STATEFUL, OPAQUE)
"""Kinds of objects into which an operator looks."""


def not_contains(container: Any, element: Any) -> bool:
    """`element not in container`."""
    return element not in container


_operators = {
    name: getattr(operator, name)
    for name in (
        "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "ilshift", "irshift", "ior", "ixor", "iand",
        "imatmul", "add", "sub", "mul", "mod", "or_", "xor", "and_", "eq", "ne", "lt", "le", "gt", "ge", "contains",
    )
} | {"not_contains": not_contains}  # fmt: skip


def binary(name: str, left: Any, right: Any, site: int) -> Any:
    """`left + right` and the like."""
    if kind_of(type(left)) in COMBINED or kind_of(type(right)) in COMBINED:
        touch_all(False, site, left, right, deep=name == "mod")
        for shown in right if name == "mod" and type(right) is tuple else ():
            shows(shown, site)
        result = _operators[name](left, right)
        return result if now.execution is None else result_of(now.execution, result, site)
    if name == "mod" and isinstance(left, str | bytes):
        shows(right, site)
    return _operators[name](left, right)


def inplace(name: str, left: Any, right: Any, site: int) -> Any:
    """`left += right` and the like."""
    if kind_of(type(left)) in (CONTAINER, OPAQUE):
        ex, thread = running()
        if (filled := filling(left, name, (right,), site)) is not None:
            right = filled[0]
        elif ex is not None and thread is not None:
            accesses = contents(ex, left, True, site)
            if kind_of(type(right)) in COMBINED:
                accesses += contents(ex, right, False, site)
            ex.touch_all(thread, accesses, site)
    return _operators[name](left, right)


def compare(name: str, left: Any, right: Any, site: int) -> Any:
    """`left == right`, `left in right` and the like."""
    if name in ("contains", "not_contains"):
        if type(right) is types.GeneratorType:
            right = library.resumptions(right, site)
        before_comparison(name, left, right, site)
        if type(right) is list and compared_by_python((left, *right), "__eq__"):
            return searched(right, "__contains__", (left,), site) is (name == "contains")
        left, right = right, left
        if isinstance(left, dict | set) and python_compares(right):
            return looked_up(left, False, site, lambda: _operators[name](left, right))
    else:
        before_comparison(name, left, right, site)
    return _operators[name](left, right)
