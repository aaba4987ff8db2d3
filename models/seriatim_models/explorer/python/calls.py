"""What the rewritten code calls, by what it is: Python, rewritten or not, functions of C, classes, their methods."""

from __future__ import annotations

import abc
import builtins
import collections
import contextvars
import datetime
import functools
import io
import itertools
import logging
import operator
import re
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.python import callers
from seriatim_models.explorer.python.accesses import (
    CHANGING,
    FILE,
    ITERATING,
    LAZY,
    MARK,
    PARTIAL_SET,
    STATEFUL,
    before_load,
    before_store,
    changes_process,
    contents,
    del_,
    derive,
    generated,
    get,
    label_of,
    library,
    look_inside,
    made_for_class,
    member,
    named,
    needs_logging,
    now,
    of_all_threads,
    of_attrs,
    passes_on,
    record_of,
    result_of,
    set_,
    shows,
    touch_all,
    touch_contents,
    touch_files,
    unobserved_method,
)
from seriatim_models.explorer.python.called_back import (
    ORDERING,
    SEARCHES,
    compared_by_python,
    looked_up,
    searched,
    sort_options,
)
from seriatim_models.explorer.python.classes import (
    class_made,
    kind_shown,
    looked_over,
    names_of,
    subclasses,
)
from seriatim_models.explorer.python.containers import read
from seriatim_models.explorer.python.execution import PythonExecution
from seriatim_models.explorer.python.iterations import (
    AT_ONCE,
    ELEMENTS_CALLED,
    SPECIAL,
    CalledByC,
    HeldIteration,
    callee,
    filling,
    gone_through,
    grouped,
    in_one_go,
    in_order,
    iter_,
    lazy,
    made_by_python,
    prepared,
    resumed,
)
from seriatim_models.explorer.python.places import (
    BUFFERS,
    CLASS,
    CONTAINER,
    GLOBALS,
    IMMUTABLE,
    INSTANCE,
    METHOD_OF_C,
    NATIVE,
    OPAQUE,
    PLAIN,
    TUPLE,
    VALUE,
    VIEW,
    elements,
    kind_of,
    where,
    written_in_c,
)
from seriatim_models.explorer.python.rewrite import HOOKED, MODULE_TOKEN

DEEP = frozenset((repr, ascii, format, print, sorted, min, max, sum, hash))


SPECIAL_METHODS = {repr: "__repr__", ascii: "__repr__", hash: "__hash__"}
"""Built-in functions, and the method of an object that each calls."""


SLOT_METHODS = {
    "__get__": "__getattribute__",
    "__set__": "__setattr__",
    "__delete__": "__delattr__",
}
"""Methods of what stands for a slot in a class, and those of the object that do the same."""


ATTRIBUTED = (INSTANCE, CLASS, VALUE, TUPLE)
"""Kinds of objects whose attributes are all that C code keeps for a program."""


COMPARING = frozenset(("index", "count", "remove", "sort", "__eq__", "__contains__", "__repr__"))
"""Built-in functions, and methods of containers, that look at what the elements hold."""


GETTERS = frozenset((operator.attrgetter, operator.itemgetter, operator.methodcaller))
"""C code that looks into objects later, wherever it is called."""


LOOKING = frozenset((isinstance, issubclass, callable, type, builtins.super))
"""What looks at no contents."""


C_METHODS = (types.BuiltinFunctionType, METHOD_OF_C, types.MethodDescriptorType)
"""What a class of Python has of C code, and what a method may be made of: `types.MethodType(list.append, items)`."""


def call(function: Any, site: int, /, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`."""
    ex = now.execution
    kind = type(function)
    if ex is None or ex.current is None:
        result = None if _logs(function, kind, args) else function(*args, **kwargs)
        if ex is not None and ex.closing and type(result) is types.CoroutineType:
            ex.coroutines.append((result, site))  # of a `finally`: nobody will await it
        return result
    if kind is types.FunctionType or kind is types.MethodType:
        code = function if kind is types.FunctionType else function.__func__
        if isinstance(code, C_METHODS):
            return call(code, site, function.__self__, *args, **kwargs)
        if type(code) is types.FunctionType and MARK not in code.__globals__:
            if code.__globals__ is logging.__dict__ and _logs(function, kind, args):
                return None
            given = args if code is function else (function.__self__, *args)
            twin = library.observed_twin(code)
            if twin is not None:
                return twin(*given, **kwargs)
            _unobserved(ex, code, given, kwargs, site)
            function, args, kwargs = callers.passed_on, (function, args, kwargs), {}
        result = function(*args, **kwargs)
        if type(result) is types.CoroutineType:
            ex.coroutines.append((result, site))
        return generated(ex, result, site)
    handler = _callers.get(kind)
    if handler is not None:
        return handler(ex, function, args, kwargs, site)
    if isinstance(function, type):
        return _call_class(ex, function, args, kwargs, site)
    return _call_object(ex, function, args, kwargs, site)


def _call_object(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> Any:
    """An object whose class has a `__call__`."""
    kind = type(function)
    method = getattr(kind, "__call__", None)  # noqa: B004 - its code is wanted
    if method is functools.partial.__call__:
        return _call_partial(ex, function, args, kwargs, site)
    if isinstance(method, C_METHODS):  # `__call__ = items.append`
        bound = () if hasattr(method, "__self__") else (function,)
        return call(method, site, *bound, *args, **kwargs)
    if isinstance(method, types.FunctionType):
        if MARK not in method.__globals__ and not getattr(kind, "__s_native__", False):
            _unobserved(ex, method, (function, *args), kwargs, site)
    else:
        touch_contents(function, True, site)
        touch_all(False, site, *args, *kwargs.values(), deep=True)
    return function(*args, **kwargs)


LOGGING = frozenset(
    ("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log")
)  # fmt: skip
"""Functions and methods that write to a log: they do nothing as long as the program has no handler of its own."""

ASKING = frozenset(("getLogger", "isEnabledFor", "setLevel", "getLevelName", "addLevelName"))
"""Those that a module calls before it logs: they need not be observed."""


def _writes_nowhere(kind: type) -> bool:
    """Whether a handler of this class does nothing with what is logged, and has no lock."""
    nothing = logging.NullHandler
    return issubclass(kind, nothing) and all(
        getattr(kind, name) is getattr(nothing, name) for name in ("handle", "emit", "createLock")
    )


def _logs(function: Any, kind: type, args: tuple[Any, ...]) -> bool:
    """Whether a call only writes to a log that nobody reads.

    Raises `NotObserved` for all else that a program does with logging: what it keeps would outlive the execution.
    """
    code = function.__func__ if kind is types.MethodType else function
    if type(code) is not types.FunctionType or code.__globals__ is not logging.__dict__:
        return False
    if code.__name__ in LOGGING or (
        code.__name__ == "addHandler" and _writes_nowhere(type(args[-1]))
    ):
        return True
    if code.__name__ not in ASKING:
        needs_logging()
    return False


def _unobserved(
    ex: PythonExecution, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], site: int
) -> None:
    """Python that was not rewritten is called: what it is given is out of sight meanwhile."""
    changes_process(function, site)
    # Not `function.__module__`, which functools.wraps copies from another function.
    module = str(function.__globals__.get("__name__") or "?")
    if of_attrs(function):
        library.read_deeply(args, site, divisible=True)
    if function in CLASS_CHECKS:
        library.reads_answers(ex)
    if passes_on(module) or made_for_class(function):
        return
    if module == "inspect" and function.__qualname__.startswith("Signature."):
        return  # it puts arguments in their places, and looks into none
    thread = ex.current
    assert thread is not None
    if uses_files(module, function):
        touch_files(site)
    if module.partition(".")[0] in library.readers:
        library.read_deeply((*args, *kwargs.values()), site)
        return
    for value in (*args, *kwargs.values()):
        if kind_of(type(value)) == CLASS or (module in LOOKING_OVER and callable(value)):
            looked_over(ex, thread, value, site)
        _given(ex, value, function, module, site)


def _given(ex: PythonExecution, value: Any, function: Any, module: str, site: int) -> None:
    """Note what Python that was not rewritten is given, with what that holds."""
    thread = ex.current
    assert thread is not None
    for element in elements(value):
        known = id(element) in ex.records or element is value
        if not known or type(element) is types.FunctionType:
            continue
        if kind_of(type(element)) == OPAQUE:
            touch_contents(element, True, site)
            if module == "random":
                continue  # it draws, in one operation
        if kind_of(type(element)) in (CONTAINER, INSTANCE, OPAQUE):
            record = record_of(ex, element, site)
            ex.opaque(thread, record, f"{module}.{function.__qualname__}", site)


LOOKING_OVER = ("inspect", "annotationlib")
"""Modules whose functions read what is said of a function; the second is of 3.14."""


CLASS_CHECKS = (abc.ABCMeta.__instancecheck__, abc.ABCMeta.__subclasscheck__)
"""What a metaclass of Python calls by `super()`; `isinstance` itself is announced by `class_checks`."""


NO_FILES = frozenset(
    ("fspath", "getpid", "getppid", "urandom", "cpu_count", "get_terminal_size", "sched_getaffinity", "uname",
     "getuid", "geteuid", "getgid", "getegid", "getlogin", "strerror", "times", "WIFEXITED", "sched_yield")
)  # fmt: skip
"""Functions of `posix` that look at no file."""


NO_FILES_OF_OS = frozenset(
    ("fspath", "fsencode", "fsdecode", "get_exec_path", "getenv", "encode", "decode", "encodekey", "check_str")
)  # fmt: skip
"""Functions of `os`, written in Python, that look at no file; the last four are those of `os.environ`."""


FILE_MODULES = frozenset(
    ("shutil", "tempfile", "glob", "fileinput", "filecmp", "linecache", "zipfile", "tarfile")
)


FILE_FUNCTIONS = frozenset(
    ("exists", "lexists", "isfile", "isdir", "islink", "ismount", "getsize", "getmtime", "getatime", "getctime",
     "samefile", "realpath")
)  # fmt: skip
"""Those of `os.path` that look at files."""


ONLY_LOOK = frozenset(("builtins", "math", "_functools", "_operator", "operator"))
"""Modules of C whose functions change nothing but what they are given."""


OF_ALL_THREADS = frozenset(
    getattr(sys, name)
    for name in (
        "setrecursionlimit",
        "setswitchinterval",
        "set_int_max_str_digits",
        "setdlopenflags",
    )
    if hasattr(sys, name)
)
"""Functions of C that change what all threads of the process share."""


CLOCK = frozenset(("now", "utcnow", "today"))
"""Methods of the classes of `datetime` that look at the clock."""


def uses_files(module: str, function: Any) -> bool:
    """Whether a function of the library, written in Python, looks at files or changes them."""
    top = module.partition(".")[0]
    if top in ("posixpath", "genericpath", "ntpath"):
        return function.__name__ in FILE_FUNCTIONS
    if top == "os":
        return function.__name__ not in NO_FILES_OF_OS
    if top == "pathlib":
        return not function.__qualname__.startswith("Pure")
    return top in FILE_MODULES


OBSERVED_C = frozenset(
    ("builtins", "_heapq", "_bisect", "itertools", "_collections", "math", "_functools", "time", "_operator",
     "operator", "_thread", "_abc", "_struct", "_random", "sys", "posix", "_io", "_weakref", "_string")
)  # fmt: skip
"""Modules of C whose functions look into containers, but not into attributes of objects."""


def _unobserved_c(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> Any:
    """C code may read the attributes of what it is given: pickle, json. Returns what to call for it."""
    thread = ex.current
    for value in (*args, *kwargs.values()):
        for element in elements(value):
            if (
                kind_of(type(element)) == INSTANCE
                and id(element) in ex.records
                and thread is not None
            ):
                what = f"{function.__module__}.{function.__name__}"
                if "pickle" in what:
                    raise _not_found(what, site)
                ex.opaque(thread, ex.records[id(element)], what, site)
    return (
        functools.partial(_pickled, function, site)
        if function.__module__ == "_pickle"
        else function
    )


def _not_found(what: str, site: int) -> OutsideModel:
    return OutsideModel(
        f"{what} at {where(site)}: pickle looks a class up by its name, and finds the one outside of "
        "the exploration. Put a stub in its place in the test"
    )


def _pickled(function: Any, site: int, *args: Any, **kwargs: Any) -> Any:
    """What `pickle` makes. Classes and functions of the program are not those that it finds by their names."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        if "not the same object as" not in str(error):
            raise
    raise _not_found(f"pickle.{function.__name__}", site)


def _call_c(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> Any:
    """A function of C, or a method of an object of C."""
    special = _special.get(function)
    if special is not None:
        return _specially(special, function, site, args, kwargs)
    if function in LOOKING:
        return function(*args, **kwargs)
    owner = function.__self__
    name = function.__name__
    args = resumed(name, args, site)
    if type(owner) is contextvars.Context and name == "run" and args:
        return function(_in_context, owner, args[0], site, *args[1:], **kwargs)
    if owner is None or type(owner) is types.ModuleType:
        return _call_function(ex, function, args, kwargs, site)
    if owner is type and name == "__new__":
        return callers.passed_on(function, tuple(map(library.plain, args)), kwargs)
    if name in CLOCK and isinstance(owner, type) and issubclass(owner, datetime.date):
        return library.today(owner, name, *args, **kwargs)
    return _call_method(ex, owner, name, function, args, kwargs, site)


def _call_function(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> Any:
    """A function of a module of C."""
    module, name = getattr(function, "__module__", None) or "builtins", function.__name__
    if function in ORDERING and args and isinstance(args[0], list):
        return ORDERING[function](site, *args, **kwargs)
    if function in ELEMENTS_CALLED:
        args, between = gone_through(function, args, kwargs, site)
        if between:
            return result_of(ex, function(*args, **kwargs), site)
    elif name in ("_count_elements", "iadd", "ior") and (
        filled := filling(args[0], name, args[1:], site)
    ):
        return function(args[0], *filled)
    if kwargs.get("key") is not None:
        kwargs = {**kwargs, "key": callee(kwargs["key"], site)}
        if function is sorted:
            args = tuple(iter_(argument, site, True) for argument in args)
    if module not in ONLY_LOOK:
        ex.changes(ex.current)
    if function in OF_ALL_THREADS:
        of_all_threads(ex, f"sys.{name}", site)
    if module not in OBSERVED_C:
        args = tuple(map(library.plain, args))
        function = _unobserved_c(ex, function, args, kwargs, site)
    in_one_go(ex, (*args, *kwargs.values()), site)
    # Functions of modules other than builtins may change what they are given: heapq, bisect, random.
    changes = module != "builtins"
    # What was made just now and stored nowhere (`max(map(abs, a))`) is no place; what it goes through was announced.
    objects = [
        obj
        for obj in (*args, *kwargs.values())
        if id(obj) not in ex.views or id(obj) in ex.records or kind_of(type(obj)) == VIEW
    ]
    _by_methods(ex, function, objects, site)
    if objects and any(kind_of(type(obj)) not in (VALUE, INSTANCE, NATIVE) for obj in objects):
        touch_all(changes, site, *objects, deep=changes or function in DEEP)
    if function is open or (module in ("posix", "nt") and name not in NO_FILES):
        touch_files(site)  # `open` may make a file, or find none
    return result_of(ex, function(*args, **kwargs), site, objects)


def _specially(special: Any, function: Any, site: int, args: Any, kwargs: Any) -> Any:
    """What stands for a built-in function; that one itself says what is wrong with a call that has a wrong form."""
    try:
        return special(site, *args, **kwargs)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
    return function(*args, **kwargs)


def _in_context(
    context: contextvars.Context, function: Any, site: int, *args: Any, **kwargs: Any
) -> Any:
    """`context.run(function)`: it may be entered once at a time. What it calls may be C code."""
    ex = now.execution
    touch_contents(context, True, site)
    try:
        return call(function, site, *args, **kwargs)
    finally:
        if ex is not None and not ex.closing:
            touch_contents(context, True, site)


def _by_methods(ex: PythonExecution, function: Any, objects: list[Any], site: int) -> None:
    """Announce what methods read by which a function of C looks at objects of Python."""
    if function is format or function is print:
        for obj in objects:
            shows(obj, site)
    elif function in SPECIAL_METHODS:
        for obj in objects:
            if kind_of(type(obj)) == CLASS or isinstance(obj, functools.partial):
                shows(obj, site)
            elif kind_of(type(obj)) == INSTANCE:
                unobserved_method(obj, SPECIAL_METHODS[function], site)


def _call_container(
    ex: PythonExecution, owner: Any, name: str, function: Any, args: Any, kwargs: Any, site: int
) -> Any:
    """A method of a container, of a view of one, or of what has its state inside of C."""
    objects = [*args, *kwargs.values()]
    if name == "__setstate__" and isinstance(owner, functools.partial):
        ex.need(PARTIAL_SET, site)
    if (
        name in SEARCHES
        and type(owner) is list
        and args
        and compared_by_python((args[0], *owner), "__eq__")
    ):
        return searched(owner, name, args, site)
    filled = filling(owner, name, args, site)
    if filled is not None:
        return function(*filled, **kwargs)
    in_one_go(ex, args, site)
    if name == "sort":
        kwargs = _before_sort(ex, owner, kwargs, site)
    else:
        _before_method(ex, owner, name, objects, site)
    if isinstance(owner, dict | set) and any(type(obj) not in IMMUTABLE for obj in objects):
        changes = name in CHANGING
        result = looked_up(owner, changes, site, lambda: function(*args, **kwargs))
    else:
        result = function(*args, **kwargs)
    if kind_of(type(result)) == VIEW:
        ex.views[id(result)] = (result, ex.views.get(id(owner), (None, owner))[1])
        return result
    return result_of(ex, result, site, (owner, *objects))


def _before_sort(
    ex: PythonExecution, owner: Any, options: dict[str, Any], site: int
) -> dict[str, Any]:
    """Announce a sort in place; returns its options."""
    key = callee(options.get("key"), site)
    if not isinstance(key, CalledByC):
        _before_method(ex, owner, "sort", [], site)
        return sort_options(owner, options, site)
    _before_method(ex, owner, "sort", [key.container], site)
    key.in_c, key.step = True, ex.steps
    return {**options, "key": key}


def _before_method(
    ex: PythonExecution, owner: Any, name: str, objects: list[Any], site: int
) -> None:
    """Announce one operation of a method of C on its object and on what it is given."""
    thread = ex.current
    for obj in objects:
        named(ex, obj, site)
    if any(map(_looked_into, objects)) and name != "append":
        accesses = contents(ex, owner, name in CHANGING, site)
        for obj in objects:
            if _looked_into(obj):
                accesses += contents(ex, obj, "into" in name, site)  # `readinto`, `pack_into`
        if thread is not None:
            ex.touch_all(thread, accesses, site)
    else:
        touch_contents(owner, name in CHANGING, site)
        if name in COMPARING and thread is not None:
            look_inside(ex, thread, owner, site)


def _looked_into(obj: Any) -> bool:
    """Whether a method of C that is given an object may read what it holds: a container, a view, a buffer."""
    return kind_of(type(obj)) in STATEFUL or isinstance(obj, BUFFERS)


def _call_method(
    ex: PythonExecution, owner: Any, name: str, function: Any, args: Any, kwargs: Any, site: int
) -> Any:
    """A method, written in C, of `owner`."""
    what = kind_of(type(owner))
    if type(owner) is types.GeneratorType:
        return library.resume(owner, function, args, site)
    if what in (CONTAINER, OPAQUE, VIEW):
        return _call_container(ex, owner, name, function, args, kwargs, site)
    if what in ATTRIBUTED and name in ("__setattr__", "__delattr__", "__getattribute__"):
        if name == "__getattribute__" and args == ("__dict__",) and what != CLASS:
            return library.attribute_dict(owner, site)
        _before_slot(ex, name, owner, args, site)
        return function(*args, **kwargs)
    if type(owner) is types.MemberDescriptorType and args and name in SLOT_METHODS:
        _before_slot(ex, SLOT_METHODS[name], args[0], (owner.__name__, *args[1:]), site)
        return function(*args, **kwargs)
    if name in ("__subclasses__", "add_note"):
        _before_what_is_kept(ex, owner, name, site)
    if what == INSTANCE and name in ("__reduce_ex__", "__reduce__", "__getstate__"):
        library.read_deeply((owner,), site, 0)
        return library.reduced(function(*args, **kwargs), owner, site)
    in_one_go(ex, args, site)
    if type(owner) is contextvars.ContextVar and name != "get":
        ex.changes(ex.current)
    objects = [*args, *kwargs.values()]
    if name == "format" and isinstance(owner, str) and re.search(r"\{\w*[.\[]", owner):
        ex.search.unseen[f"a format that looks into its arguments at {where(site)}"] = None
    if any(map(_looked_into, objects)):
        touch_all(False, site, *objects, deep=name in ("format", "join"))  # "".join(parts)
    for obj in objects if name == "format" and isinstance(owner, str) else ():
        shows(obj, site)
    return result_of(ex, function(*args, **kwargs), site)


def _before_what_is_kept(ex: PythonExecution, owner: Any, name: str, site: int) -> None:
    """Announce a method of C that reads or writes what is no attribute by this name."""
    if kind_of(type(owner)) == CLASS and name == "__subclasses__":
        subclasses(owner, False, site)
    elif kind_of(type(owner)) == INSTANCE and name == "add_note" and ex.current is not None:
        before_store(ex, ex.current, owner, "__notes__", site)


def _before_slot(ex: PythonExecution, name: str, obj: Any, args: Any, site: int) -> None:
    """`object.__setattr__(obj, name, value)` and its like are accesses of the attribute."""
    thread = ex.current
    if thread is None or not args:
        return
    if name == "__getattribute__":
        before_load(ex, thread, obj, args[0], member(type(obj), args[0]), site)
    else:
        if len(args) > 1:
            named(ex, args[1], site)
        before_store(ex, thread, obj, args[0], site)


def _call_descriptor(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> Any:
    """A method of a class of C, called with its object: `list.append(a, 1)`."""
    if not args:
        return function(*args, **kwargs)
    owner, name = args[0], function.__name__
    if type(owner) is library.attribute_dict:
        return getattr(owner, name)(*args[1:], **kwargs)
    bound = (
        function.__get__(owner, type(owner)) if isinstance(owner, function.__objclass__) else None
    )
    if bound is None:
        return function(*args, **kwargs)
    return _call_method(ex, owner, name, bound, args[1:], kwargs, site)


def _make_lazy(ex: PythonExecution, kind: Any, args: Any, kwargs: Any, site: int) -> Any:
    """`map`, `filter`, `zip` or `enumerate`."""
    sources = prepared(kind, args, site)
    return lazy(ex, kind(*sources, **kwargs), sources)


def _call_type(ex: PythonExecution, kind: Any, args: Any, kwargs: Any, site: int) -> Any:
    """`type(obj)`, `super(...)`, or a class that is made: `type(name, bases, attributes)`, also of a metaclass."""
    if kind is type and len(args) == 1:
        return kind_shown(ex, args[0], site)
    given = tuple(map(library.plain, args))
    if kind is super:
        return kind(*given, **kwargs)
    if type(kind.__init__) is types.FunctionType and MARK not in kind.__init__.__globals__:
        _unobserved(ex, kind.__init__, args, kwargs, site)
    bases = args[1] if len(args) > 1 and isinstance(args[1], tuple) else ()
    return library.observed_class(
        class_made(ex, bases, site, lambda: callers.passed_on(kind, given, kwargs))
    )


def _call_class(ex: PythonExecution, kind: Any, args: Any, kwargs: Any, site: int) -> Any:
    """An object is made."""
    if kind is reversed and len(args) == 1:
        touch_contents(args[0], False, site)  # C code asks for its length
        return HeldIteration(args[0], reversed(args[0]), site)
    if kind in LAZY:
        return _make_lazy(ex, kind, args, kwargs, site)
    if kind is super or issubclass(kind, type):
        return _call_type(ex, kind, args, kwargs, site)
    if kind is types.ModuleType:
        return _make_module(ex, *args, **kwargs)
    args = resumed(kind.__name__, args, site)
    if kind in GETTERS:
        ex.search.unseen[f"operator.{kind.__name__} at {where(site)}"] = None
    if written_in_c(kind) and kind is not functools.partial:
        if args or kwargs:
            return _call_class_of_c(ex, kind, args, kwargs, site)
    elif kind.__init__ is logging.Handler.__init__ and kind.__module__ == "logging":
        return kind(*args, **kwargs)  # one that writes nowhere
    elif type(kind.__init__) is types.FunctionType and MARK not in kind.__init__.__globals__:
        if kind.__init__.__globals__["__name__"] in ("logging", "logging.handlers"):
            needs_logging()
        twin = library.observed_twin(kind.__init__)
        if twin is not None and kind.__new__ is object.__new__:
            return _made_of(
                ex, kind, args, kwargs, site, functools.partial(_initialized, kind, twin)
            )
        _unobserved(ex, kind.__init__, args, kwargs, site)
        return _made_of(ex, kind, args, kwargs, site, _by_program(kind))
    return _made_of(ex, kind, args, kwargs, site)


def _initialized(kind: Any, initialize: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """An object of a class by another `__init__`."""
    made = kind.__new__(kind)
    initialize(made, *args, **kwargs)
    return made


def _make_module(ex: PythonExecution, *args: Any, **kwargs: Any) -> types.ModuleType:
    """A module of the program's own: what is set in it is a global as that of an observed one."""
    module = types.ModuleType(*args, **kwargs)
    vars(module)[MODULE_TOKEN] = ex.record(object(), f"global {module.__name__}", True)
    ex.record(vars(module), GLOBALS + module.__name__, True)
    return module


GATHERING = (list, tuple, set, frozenset, dict, bytes, bytearray, collections.deque)
"""Classes of C whose objects are made of the elements of what they are given; others keep it, or look at it."""


def _call_class_of_c(ex: PythonExecution, kind: Any, args: Any, kwargs: Any, site: int) -> Any:
    """An object of C is made from something."""
    if len(args) == 1 and args[0].__class__ in (int, str, float):
        return result_of(ex, kind(*args, **kwargs), site)
    if kind.__module__ == "itertools":
        args = prepared(kind, args, site)
        kwargs = {k: callee(v, site) if k in ("key", "func") else v for k, v in kwargs.items()}
        if kind not in AT_ONCE:
            return lazy(ex, _made_of(ex, kind, args, kwargs, site), (*args, *kwargs.values()))
    else:
        touch_all(False, site, *args, *kwargs.values(), deep=kind is str)
        if kind is str:
            shows(args[0] if args else None, site)
        args = tuple(
            (in_order(argument) or argument)
            if type(argument) in (set, frozenset)
            else argument
            if type(argument) in PLAIN
            or not issubclass(kind, GATHERING)
            or isinstance(argument, FILE)  # what reads and writes through it needs its methods
            or kind_of(type(argument)) == VIEW
            or (issubclass(kind, dict) and hasattr(argument, "keys"))  # a mapping, not pairs
            else iter_(argument, site)
            for argument in args
        )
    in_one_go(ex, args, site)
    if kind is io.FileIO:
        touch_files(site)
    value = _made_of(ex, kind, args, kwargs, site)
    if kind is types.MappingProxyType:
        ex.views[id(value)] = (value, args[0])
    return value


def _by_program(kind: Any) -> Callable[..., Any]:
    """A class whose objects know which module has made them: `enum.Enum("Colour", "RED")`, `TypeVar("T")`."""
    return lambda *args, **kwargs: callers.passed_on(kind, args, kwargs)


def _made_of(
    ex: PythonExecution, kind: Any, args: Any, kwargs: Any, site: int,
    make: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """Call a class, or what makes its objects, and name what it made."""
    before = 0 if ex.acting is None else ex.numbers[ex.acting.tid]
    if make is None and (
        (len(args) > 1 and type(kind).__call__ is not type.__call__)  # functional, of `enum`
        or kind.__module__ == "typing"
    ):
        make = _by_program(kind)
    value = (make or kind)(*args, **kwargs)
    if ex.current is not None and kind_of(type(value)) in (CONTAINER, INSTANCE, OPAQUE):
        record = ex.records.get(id(value))
        if record is None:
            ex.record(value, label_of(value, site), True)
            if written_in_c(kind) and kind not in ITERATING:
                derive(ex, value, (*args, *kwargs.values()))
        elif record.owner is ex.acting and record.number > before and not record.shared:
            record.made = True  # its own `__init__` has used it first
        if kind is functools.partial and value.keywords:
            ex.record(value.keywords, label_of(value.keywords, site), True)
    return value


def _call_partial(ex: PythonExecution, function: Any, args: Any, kwargs: Any, site: int) -> Any:
    if PARTIAL_SET in ex.search.promoted:
        touch_contents(function, False, site)
    if function.keywords:
        touch_contents(function.keywords, False, site)
    return call(function.func, site, *function.args, *args, **{**function.keywords, **kwargs})


_callers: dict[type, Callable[..., Any]] = {
    types.BuiltinFunctionType: _call_c,
    METHOD_OF_C: _call_c,
    types.MethodWrapperType: lambda ex, f, args, kwargs, site: _call_method(
        ex, f.__self__, f.__name__, f, args, kwargs, site
    ),
    types.MethodDescriptorType: _call_descriptor,
    types.WrapperDescriptorType: _call_descriptor,
    functools.partial: _call_partial,
    types.GenericAlias: lambda ex, f, args, kwargs, site: call(f.__origin__, site, *args, **kwargs),
    type: _call_class,
}


def _getattr(site: int, obj: Any, name: str, *default: Any) -> Any:
    if len(default) > 1:
        return getattr(obj, name, *default)  # says what is wrong
    try:
        return get(obj, name, site)
    except AttributeError:
        if default:
            return default[0]
        raise


def _hasattr(site: int, obj: Any, name: str) -> bool:
    try:
        get(obj, name, site)
    except AttributeError:
        return False
    return True


def _next(site: int, iterator: Any, *default: Any) -> Any:
    if isinstance(iterator, types.GeneratorType):
        return library.resume(iterator, next, (iterator, *default), site)
    touch_contents(iterator, True, site)
    if type(iterator) is itertools.groupby and not default:
        return grouped(iterator, site)
    return next(iterator, *default)


def _vars(site: int, *objects: Any) -> Any:
    if objects:
        if len(objects) > 1 or not hasattr(objects[0], "__dict__"):
            return vars(*objects)
        return get(objects[0], "__dict__", site)
    frame = sys._getframe(1)
    while MARK not in frame.f_globals and frame.f_back is not None:
        frame = frame.f_back
    variables = frame.f_locals
    return shown(variables if type(variables) is dict else dict(variables))


def shown(names: Any) -> Any:
    """What `locals`, `vars` or `dir` show of a function, without what rewritten code keeps among its variables.

    Those of a module or a class are their own namespace, and stay as they are.
    """
    if type(names) is list:
        return [name for name in names if not name.startswith(HOOKED)]
    if type(names) is dict and MARK not in names and "__qualname__" not in names:
        for name in [name for name in names if name.startswith(HOOKED)]:
            del names[name]
    return names


_special: dict[Any, Callable[..., Any]] = {
    getattr: _getattr,
    setattr: lambda site, obj, name, value: set_(value, obj, name, site),
    delattr: lambda site, obj, name: del_(obj, name, site),
    hasattr: _hasattr,
    next: _next,
    vars: _vars,
    len: lambda site, value: len(read(value, site)),
    dir: names_of,
    warnings.warn: callers.warn,
    **SPECIAL,
}


def gathered(value: Any, site: int) -> Any:
    """What `obj[i:j] = value` takes: what Python makes is all made before it, and C code goes through the rest."""
    ex = now.execution
    if made_by_python(value):
        return call(list, site, value)
    if ex is not None and hasattr(value, "__next__"):
        value = iter_(value, site)
        in_one_go(ex, (value,), site)
    return value


library.call = call
library.gathered = gathered
library.in_order = in_order
library.looked_up = looked_up
