"""What the rewritten code does with containers: subscripts, iteration, operators, comparisons, `with`."""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Iterator
from typing import Any

from seriatim_models.explorer.python.accesses import (
    LAZY,
    STATEFUL,
    before_comparison,
    contents,
    library,
    made,
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
from seriatim_models.explorer.python.execution import PythonExecution
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
    elif what == OPAQUE and hasattr(value, "__next__"):
        touch_contents(value, True, site)
    elif what == INSTANCE:
        for method in ("__len__", "__bool__", "__iter__", "__str__"):
            unobserved_method(value, method, site)
    return value


def getitem(obj: Any, key: Any, site: int) -> Any:
    """`obj[key]`."""
    what = kind_of(type(obj))
    if what in (CONTAINER, OPAQUE):
        # A defaultdict makes what is missing; whether it is, others may change until the step is taken.
        missing = isinstance(obj, collections.defaultdict) and obj.default_factory is not None
        if missing and type(obj) is collections.defaultdict and runs_python(obj.default_factory):
            return made_if_missing(obj, key, site)
        touch_contents(obj, missing, site)
        if python_compares(key) and not missing:
            return looked_up(obj, False, site, lambda: obj[key])
        if missing and now.execution is not None and key not in obj:
            return result_of(now.execution, obj[key], site)
    elif what == INSTANCE:
        unobserved_method(obj, "__getitem__", site)
    return obj[key]


def runs_text(text: Any, site: int) -> Any:
    """`eval` and `exec`: what the text does is not seen."""
    ex = now.execution
    if ex is not None:
        ex.search.unseen[f"code that is made of a text runs at {where(site)}"] = None
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


class Iteration:
    """An iterator that announces each step of going through a container."""

    __s_native__ = True

    def __init__(self, container: Any, real: Iterator[Any], site: int) -> None:
        self.container = container
        self.real = real
        self.site = site
        self.in_c = False
        """Whether C code goes through it, which no other thread interrupts: `list(zip(a, b))`."""
        self.step = -1
        """The step of the last announcement."""

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Any:
        ex = now.execution
        if not self.in_c or ex is None or self.step != ex.steps:
            touch_contents(self.container, False, self.site)
            self.step = -1 if ex is None else ex.steps
        return next(self.real)

    def __length_hint__(self) -> int:
        return operator.length_hint(self.real)


def iter_(value: Any, site: int) -> Any:
    """What a `for` goes through."""
    what = kind_of(type(value))
    if what in (CONTAINER, VIEW) and not _has_own(value, "__iter__"):
        return Iteration(value, iter(value), site)
    if what == OPAQUE and hasattr(value, "__next__"):
        ex = now.execution
        if ex is None or id(value) not in ex.records:
            # Stored nowhere: nobody else has it.
            if isinstance(value, types.GeneratorType | map | filter | zip | enumerate):
                return value
        elif isinstance(value, types.GeneratorType):
            return library.resumptions(value, site)
        return Iteration(value, value, site)
    if what == INSTANCE:
        unobserved_method(value, "__iter__", site)
    return value


def in_one_go(ex: PythonExecution, arguments: tuple[Any, ...], site: int) -> None:
    """C code is about to go through these: nothing comes between two elements unless Python runs there."""
    iterations: list[Iteration] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop()
        if type(argument) is Iteration:
            iterations.append(argument)
            argument = argument.container
        if type(argument) in LAZY and (known := ex.views.get(id(argument))) is not None:
            waiting += known[1]  # type: ignore[arg-type]  # of a lazy object what it goes through
    if iterations:
        touch_all(False, site, *(iteration.container for iteration in iterations))
        for iteration in iterations:
            iteration.in_c = True
            iteration.step = ex.steps


def _has_own(value: Any, method: str) -> bool:
    """Whether a class written in Python replaces a method of the container that it is made of."""
    return isinstance(getattr(type(value), method, None), types.FunctionType)


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
    if kind_of(type(left)) in STATEFUL or kind_of(type(right)) in STATEFUL:
        touch_all(False, site, left, right, deep=name == "mod")
        for shown in right if name == "mod" and type(right) is tuple else ():
            shows(shown, site)
        return made(_operators[name](left, right), site)
    return _operators[name](left, right)


def inplace(name: str, left: Any, right: Any, site: int) -> Any:
    """`left += right` and the like."""
    if kind_of(type(left)) == CONTAINER:
        ex, thread = running()
        if ex is not None and thread is not None:
            accesses = contents(ex, left, True, site)
            if kind_of(type(right)) in STATEFUL:
                accesses += contents(ex, right, False, site)
            ex.touch_all(thread, accesses, site)
    return _operators[name](left, right)


def compare(name: str, left: Any, right: Any, site: int) -> Any:
    """`left == right`, `left in right` and the like."""
    before_comparison(name, left, right, site)
    if name in ("contains", "not_contains"):
        if type(right) is list and compared_by_python((left, *right), "__eq__"):
            return searched(right, "__contains__", (left,), site) is (name == "contains")
        left, right = right, left
        if isinstance(left, dict | set) and python_compares(right):
            return looked_up(left, False, site, lambda: _operators[name](left, right))
    return _operators[name](left, right)
