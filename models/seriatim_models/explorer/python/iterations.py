"""How elements are gone through: by a `for`, which others may interrupt, and by C code, which goes through in one step.

C code gives way to others only where it calls Python back: a key, a predicate, a generator, an `__add__` of an element.
So `list(chain(a, b))` and `max(keys, key=table.get)` are one operation on all that they look into, each turn of
`for x in map(table.get, a)` is one, and `max(a, key=lambda x: x)` is one for each element.
"""

from __future__ import annotations

import functools
import itertools
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

from seriatim_models.explorer.python.accesses import (
    CHANGING,
    LAZY,
    contents,
    generated,
    library,
    look_inside,
    made,
    now,
    result_of,
    scope,
    touch_contents,
    unobserved_method,
)
from seriatim_models.explorer.python.called_back import compared_by_python, runs_python
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.places import (
    CONTAINER,
    CONTENTS,
    INSTANCE,
    METHOD_OF_C,
    NATIVE,
    OPAQUE,
    PLAIN,
    TUPLE,
    VALUE,
    VIEW,
    kind_of,
    where,
)

C_FUNCTIONS = (
    types.BuiltinFunctionType, METHOD_OF_C, types.MethodWrapperType, types.MethodDescriptorType,
    types.WrapperDescriptorType, functools.partial, type,
)  # fmt: skip
ELEMENTS_CALLED = {
    sum: ("__add__", "__radd__"), min: ("__lt__", "__gt__"), max: ("__lt__", "__gt__"),
    any: ("__bool__", "__len__"), all: ("__bool__", "__len__"), functools.reduce: (),
}  # fmt: skip
"""Functions of C that go through what they are given, and methods of the elements that they call."""
ONE_BY_ONE = frozenset(
    ("extend", "extendleft", "update", "difference_update", "__iadd__", "__ior__", "iadd", "ior", "_count_elements")
)  # fmt: skip
"""Methods of containers, and functions, that put in one element before they ask for the next."""
CALLED_AT: dict[Any, int] = {
    map: 0, filter: 0, functools.reduce: 0, itertools.accumulate: 1, itertools.takewhile: 0,
    itertools.dropwhile: 0, itertools.filterfalse: 0, itertools.starmap: 0, itertools.groupby: 1,
}  # fmt: skip
"""Which argument is a function that is called with each element."""
AT_ONCE = (itertools.product, itertools.permutations, itertools.combinations,
           itertools.combinations_with_replacement)  # fmt: skip
"""Classes whose objects go through what they are given when they are made."""


BY_ADDRESS = frozenset((
    types.CoroutineType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, METHOD_OF_C,
    types.GeneratorType,
))  # fmt: skip
"""Classes of C whose objects have their address for a hash."""


class Iteration:
    """An iterator that announces each step of going through a container."""

    __s_native__ = True

    def __init__(self, container: Any, real: Iterator[Any] | None, site: int) -> None:
        self.container = container
        """What each step reads, besides what `real` goes through itself; an empty tuple for nothing."""
        self.real = real
        """None until the first step, if it begins in that."""
        self.site = site
        self.in_c = False
        """Whether C code goes through it, which no other thread interrupts: `list(zip(a, b))`."""
        self.step = -1
        """The step of the last announcement."""

    def __iter__(self) -> Iteration:
        return self

    def announced(self) -> bool:
        """Whether C code that goes on in the same step has announced it all."""
        ex = now.execution
        return self.in_c and ex is not None and self.step == ex.steps

    def announce(self) -> None:
        """One element is about to be taken, with all that C code looks into for it."""
        ex, in_c = now.execution, self.in_c
        if ex is None:
            return
        if type(self) is Iteration and kind_of(type(self.container)) == CONTAINER:
            touch_contents(self.container, False, self.site)  # the commonest case
            self.step = ex.steps
        else:
            in_one_go(ex, (self,), self.site)
            self.in_c = in_c

    def __next__(self) -> Any:
        if not self.announced():
            self.announce()
        if self.real is None:
            self.real = iter(self.container)
        if type(self.real) is itertools.groupby:
            return grouped(self.real, self.site)
        return next(self.real)

    def __length_hint__(self) -> int:
        return 0 if self.real is None else operator.length_hint(self.real)


def grouped(groups: itertools.groupby[Any, Any], site: int) -> Any:
    """The next group, which goes through what all groups go through."""
    found = next(groups)
    ex = now.execution
    if ex is not None:
        result_of(ex, found[1], site, (groups,))
    return found


class HeldIteration(Iteration):
    """An iterator that a program asked for, of which several threads may take elements: where it stands is a place."""

    def __init__(self, container: Any, real: Iterator[Any] | None, site: int) -> None:
        super().__init__(container, real, site)
        ex = now.execution
        self.record = None
        if ex is not None and ex.current is not None:
            self.record = ex.record(self, f"iterator of {where(site)}", True)

    def stands(self) -> list[Any]:
        """Each element that is taken moves it."""
        return [] if self.record is None else [(self.record, CONTENTS, True)]


class Iterables(Iteration):
    """What `chain.from_iterable` goes through: each element is gone through, too."""

    def __next__(self) -> Any:
        if not self.announced():
            self.announce()
        assert self.real is not None
        inner = iter_(next(self.real), self.site)
        if isinstance(inner, Iteration):
            inner.in_c, inner.step = self.in_c, self.step
        return inner


class CalledByC(Iteration):
    """A function of C that other C code calls: `table.get` as a key. Its container is what it looks into."""

    def __init__(self, function: Any, site: int) -> None:
        super().__init__((), iter(()), site)
        self.function = function
        while isinstance(function, functools.partial):
            function = function.func
        owner = getattr(function, "__self__", None)
        if kind_of(type(owner)) in (CONTAINER, OPAQUE, VIEW):
            self.container = owner
        name = getattr(function, "__name__", "")
        self.writes = name in CHANGING
        self.begins = function in LAZY or name in ("iter", "__iter__", "reversed", "__reversed__")
        """Whether it makes what is gone through later, and then announces its steps."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self.announced()
            and not self.begins
            and not any(kind_of(type(arg)) in (INSTANCE, TUPLE) for arg in args)
        ):
            return self.function(*args, **kwargs)
        result = library.call(self.function, self.site, *args, **kwargs)
        self.step = -1 if now.execution is None else now.execution.steps
        return result


class Scoped:
    """What a comprehension goes through whose variables an inner function uses: beside each what stands for them."""

    def __init__(self, elements: Any, qualname: str) -> None:
        self.real = iter(elements)
        self.scope = scope(qualname)

    def __iter__(self) -> Scoped:
        return self

    def __next__(self) -> tuple[Any, Any]:
        return self.scope, next(self.real)


class ScopedAsync:
    """The same of an `async for`."""

    def __init__(self, elements: Any, qualname: str) -> None:
        self.real = aiter(elements)
        self.scope = scope(qualname)

    def __aiter__(self) -> ScopedAsync:
        return self

    async def __anext__(self) -> tuple[Any, Any]:
        return self.scope, await anext(self.real)


class Filling:
    """Elements that Python makes and that C code puts into a container, each by an operation of its own."""

    __s_native__ = True

    def __init__(self, elements: Any, container: Any, site: int) -> None:
        self.real = iter(iter_(elements, site))
        self.container = container
        self.site = site

    def __iter__(self) -> Filling:
        return self

    def __next__(self) -> Any:
        element = next(self.real)
        touch_contents(self.container, True, self.site)
        return element


GOING_THROUGH = frozenset(
    ("sum", "min", "max", "any", "all", "sorted", "fsum", "prod", "sumprod", "dist", "contains", "countOf", "indexOf",
     "fromkeys", "join", "writelines", "writerow", "writerows", "union", "intersection", "difference",
     "symmetric_difference", "intersection_update", "symmetric_difference_update", "isdisjoint", "issubset",
     "issuperset", "array", "deque", "OrderedDict", "defaultdict", "nlargest", "nsmallest", "merge")
)  # fmt: skip
"""Functions, methods and classes of C that go through what they are given; others of these names keep it nowhere."""


def resumed(name: str, args: tuple[Any, ...], site: int) -> tuple[Any, ...]:
    """The arguments of what has this name: a generator is resumed for each element, if it is gone through."""
    if name not in GOING_THROUGH or not any(type(arg) is types.GeneratorType for arg in args):
        return args
    return tuple(
        library.resumptions(arg, site) if type(arg) is types.GeneratorType else arg for arg in args
    )


def filling(owner: Any, name: str, args: tuple[Any, ...], site: int) -> tuple[Any, ...] | None:
    """The arguments of a method that fills `owner` with what Python makes meanwhile; None for all others."""
    if name not in ONE_BY_ONE or (name == "ior" and not isinstance(owner, dict)):
        return None
    if isinstance(owner, dict) and name != "_count_elements":
        args = tuple(ByKeys(arg, site) if _asked_for_keys(arg) else arg for arg in args)
    made = [isinstance(arg, ByKeys) or made_by_python(arg) for arg in args]
    if not any(made):
        return None
    return tuple(
        Filling(arg, owner, site) if by_python else arg
        for arg, by_python in zip(args, made, strict=True)
    )


class ByKeys:
    """The pairs that C code makes of a mapping in Python: it has all keys first, then one value after the other."""

    __s_native__ = True

    def __init__(self, mapping: Any, site: int) -> None:
        self.mapping = mapping
        self.keys_left = iter(library.call(list, site, mapping.keys()))

    def __iter__(self) -> ByKeys:
        return self

    def __next__(self) -> tuple[Any, Any]:
        key = next(self.keys_left)
        return key, self.mapping[key]


def _asked_for_keys(value: Any) -> bool:
    """Whether a dict that is filled with `value` asks Python for its keys or values."""
    kind = type(value)
    if not hasattr(kind, "keys") or "__s_native__" in kind.__dict__:
        return False
    names = ("__iter__",) if isinstance(value, dict) else ("keys", "__getitem__")
    return any(isinstance(getattr(kind, name, None), types.FunctionType) for name in names)


def made_by_python(elements: Any) -> bool:
    """Whether Python runs between two elements that C code takes of it."""
    if isinstance(elements, types.GeneratorType):
        return True
    if kind_of(type(elements)) == INSTANCE:
        return isinstance(getattr(type(elements), "__iter__", None), types.FunctionType)
    return _is_lazy(elements) and not _stays_in_c(elements)


def _is_lazy(value: Any) -> bool:
    return type(value) in LAZY or type(value).__module__ == "itertools"


def _stays_in_c(value: Any) -> bool:
    """Whether no Python runs when C code takes an element of `value`, or calls it."""
    if isinstance(value, CalledByC) or value is None:
        return True
    if isinstance(value, Iteration):
        return not isinstance(value.real, types.GeneratorType) and _stays_in_c(value.real)
    if _is_lazy(value):
        ex = now.execution
        return ex is not None and id(value) in ex.views
    if kind_of(type(value)) in (VALUE, TUPLE, CONTAINER, VIEW):
        return True
    return type(value).__flags__ & (1 << 9) == 0 and hasattr(value, "__next__") and not isinstance(
        value, types.GeneratorType
    )  # fmt: skip


def callee(value: Any, site: int) -> Any:
    """What C code is given to call: a function of C is wrapped, so that what it looks into is announced."""
    if isinstance(value, C_FUNCTIONS) and not runs_python(value):
        return CalledByC(value, site)
    return value


def lazy(ex: PythonExecution, value: Any, sources: tuple[Any, ...]) -> Any:
    """An iterator of C that was made from `sources`; C code may go through all of them in one go."""
    if all(_stays_in_c(source) for source in sources):
        ex.views[id(value)] = (value, sources)
    return value


def prepared(kind: Any, args: tuple[Any, ...], site: int) -> tuple[Any, ...]:
    """The arguments of an iterator of C, or of `reduce`: a function and what it is called with."""
    if kind is itertools.repeat:
        return args
    at = CALLED_AT.get(kind, -1)
    reduces = kind is functools.reduce  # its third argument is a value
    held = kind in LAZY
    return tuple(
        callee(arg, site) if n == at
        else arg if reduces and n > 1
        else _source(arg, site) if held
        else iter_(arg, site, reduces)
        for n, arg in enumerate(args)
    )  # fmt: skip


def _source(value: Any, site: int) -> Any:
    """What a `map`, `zip`, `filter` or `enumerate` goes through, which others may have: where it stands is a place."""
    kind = type(value)
    if hasattr(kind, "__next__") or not (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__")):
        return iter_(value, site)
    source = _iter(site, value)
    ex = now.execution
    if ex is None or isinstance(source, Iteration):
        return source
    return iter_(source, site)


def gone_through(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], site: int
) -> tuple[tuple[Any, ...], bool]:
    """The arguments of `sum`, `max` and their like, and whether Python runs between two elements."""
    if function is functools.reduce:
        return prepared(function, args, site), runs_python(args[0]) if args else False
    if len(args) != 1 and function in (min, max):
        return args, False  # not elements, but values
    between = runs_python(kwargs.get("key"))
    if not between and args and type(args[0]) in (*PLAIN, tuple):
        kinds = {type(element): element for element in args[0]}.values()
        between = any(compared_by_python(kinds, name) for name in ELEMENTS_CALLED[function])
    if between or kwargs.get("key") is not None:
        args = (iter_(args[0], site, True), *args[1:])
    return args, between


def for_(value: Any, site: int) -> Any:
    """What a `for` goes through; attributes may change between two steps of it, and within no step of C code."""
    live = getattr(type(value), "__s_live__", None) if kind_of(type(value)) == NATIVE else None
    return iter_(value, site) if live is None else live(value, site)


def iter_(value: Any, site: int, late: bool = False) -> Any:
    """What somebody goes through; with `late` it is begun by the first step of C code that goes through it."""
    what = kind_of(type(value))
    if what in (CONTAINER, VIEW) and not _has_own(value, "__iter__"):
        if isinstance(value, set | frozenset) and (ordered := in_order(value)) is not None:
            return Iteration(value, ordered, site)
        return Iteration(value, None if late else iter(value), site)
    if what == OPAQUE and hasattr(value, "__next__"):
        ex = now.execution
        if ex is None:
            return value
        if isinstance(value, types.GeneratorType):
            return library.resumptions(value, site)
        if id(value) not in ex.records:
            # It was stored nowhere, or where it stands is a place of what it goes through.
            if id(value) in ex.views:
                return Iteration((), value, site)
            if type(value) in LAZY:
                return value
        return Iteration(value, value, site)
    if what == OPAQUE and _gone_through_by_c(type(value)):
        return Iteration(value, None if late else iter(value), site)
    if what == INSTANCE:
        unobserved_method(value, "__iter__", site)
    return value


def _gone_through_by_c(kind: type) -> bool:
    """Whether C code goes through the elements of an object of C: an array, a view."""
    through = getattr(kind, "__iter__", None) or getattr(kind, "__getitem__", None)
    return isinstance(through, types.WrapperDescriptorType)


class InOrder:
    """Goes through a set in an order of its own; as in C, it raises if the set has grown or shrunk meanwhile."""

    def __init__(self, elements: set[Any] | frozenset[Any], order: list[Any]) -> None:
        self.elements, self.size = elements, len(order)
        self.order = iter(order)

    def __iter__(self) -> InOrder:
        return self

    def __next__(self) -> Any:
        if len(self.elements) != self.size:
            raise RuntimeError("Set changed size during iteration")
        return next(self.order)


def in_order(elements: set[Any] | frozenset[Any]) -> InOrder | None:
    """A set that C orders by addresses, in an order that is the same in each execution; None of all other sets."""
    if now.execution is None or not any(
        type(element) in BY_ADDRESS or isinstance(element, type) for element in elements
    ):
        return None
    return InOrder(elements, sorted(elements, key=_order))


def _order(element: Any) -> tuple[str, int, int, str]:
    """Where an element stands: by when it, or the object whose method it is, was made; and by its source."""
    ex = now.execution
    assert ex is not None
    made = next((k for k, (c, _) in enumerate(ex.coroutines) if c is element), 0)
    owner = ex.records.get(id(getattr(element, "__self__", element)))
    of_owner = 0 if owner is None else (owner.maker << 32) + owner.number
    name = f"{getattr(element, '__module__', '')} {getattr(element, '__qualname__', '')}"
    code = getattr(element, "__code__", None)
    line = 0 if code is None else code.co_firstlineno
    return type(element).__name__, made or of_owner, line, name


def in_one_go(ex: PythonExecution, arguments: tuple[Any, ...], site: int) -> None:
    """C code is about to go through these: nothing comes between two elements unless Python runs there."""
    iterations: list[Iteration] = []
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop()
        if isinstance(argument, Iteration):
            iterations.append(argument)
            argument = argument.real
        known = ex.views.get(id(argument))
        if known is not None and type(known[1]) is tuple:  # of a lazy object what it goes through
            waiting += known[1]
    if not iterations or (thread := ex.current) is None:
        return
    accesses: list[Any] = []
    for each in iterations:
        accesses += contents(ex, each.container, getattr(each, "writes", False), site)
        if isinstance(each, HeldIteration):
            accesses += each.stands()
    if accesses:
        ex.touch_all(thread, accesses, site)
    if any(isinstance(each, CalledByC | Iterables) for each in iterations):
        for each in iterations:
            look_inside(ex, thread, each.container, site)
    for each in iterations:
        each.in_c = True
        each.step = ex.steps


def _has_own(value: Any, method: str) -> bool:
    """Whether a class written in Python replaces a method of the container that it is made of."""
    return isinstance(getattr(type(value), method, None), types.FunctionType)


def _iter(site: int, value: Any, *sentinel: Any) -> Any:
    ex = now.execution
    if not sentinel:
        if kind_of(type(value)) in (OPAQUE, NATIVE) and hasattr(value, "__next__"):
            return iter(value)  # itself
        if ex is not None and (kept := getattr(type(value), "__s_kept__", None)) is not None:
            kept(value, ex, site)
        made = iter(iter_(value, site))
        if type(made) is Iteration:
            return HeldIteration(made.container, made.real, site)
        return made if ex is None else result_of(ex, generated(ex, made, site), site)
    called = callee(value, site)
    made = iter(called, *sentinel)
    return made if ex is None else lazy(ex, made, (called,))


def _tee(site: int, elements: Any, count: int = 2) -> Any:
    common: list[Any] = made([], site)
    """Stands for what one of them has taken and others have not."""
    source = Filling(elements, common, site) if made_by_python(elements) else iter_(elements, site)
    iterators = itertools.tee(source, count)
    ex = now.execution
    if ex is not None:
        for each in iterators:
            result_of(ex, lazy(ex, each, (source,)), site, (common,))
    return iterators


def _from_iterable(site: int, elements: Any) -> Any:
    each = iter_(elements, site)
    source = Iterables(() if not isinstance(each, Iteration) else each.container, iter(each), site)
    made = itertools.chain.from_iterable(source)
    ex = now.execution
    return made if ex is None else result_of(ex, lazy(ex, made, (source,)), site)


SPECIAL: dict[Any, Callable[..., Any]] = {
    iter: _iter, itertools.tee: _tee, itertools.chain.from_iterable: _from_iterable,
}  # fmt: skip
