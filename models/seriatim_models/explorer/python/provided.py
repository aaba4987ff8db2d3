"""Modules of the library that an execution has of its own, in the place of the real ones.

`threading`, `time` and `random` are under the control of the schedule; `sys`, `importlib`, `dataclasses` and `typing`
know the modules of the execution; `operator`, `os` and `weakref` do nothing that is out of sight.
"""

from __future__ import annotations

import atexit
import builtins
import functools
import importlib
import operator
import os
import random
import sys
import types
import uuid
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

from seriatim_models.explorer.errors import OutsideModel
from seriatim_models.explorer.model.guard import INPUT, refusal
from seriatim_models.explorer.python.accesses import MARK, library, now
from seriatim_models.explorer.python.callers import site_of_caller
from seriatim_models.explorer.python.execution import (
    BROUGHT,
    MODULES_LOOKED_INTO,
    PythonExecution,
)
from seriatim_models.explorer.python.hooks import give_hash, take_hash
from seriatim_models.explorer.python.kept_inside import (
    LiveView,
    collections_module,
    contextlib_module,
    functools_module,
    import_,
    weak_containers,
)
from seriatim_models.explorer.python.lifetimes import Finalizer, WeakReference, gc_module, proxy
from seriatim_models.explorer.python.made_methods import observe_dataclasses
from seriatim_models.explorer.python.places import CONTENTS, OF_EXECUTION, ObjectRecord, where
from seriatim_models.explorer.python.primitives import Empty, SimpleQueue, here
from seriatim_models.explorer.python.rewrite import MODULE_TOKEN
from seriatim_models.explorer.python.threads import (
    observed_classes,
    thread_module,
    threading_local_module,
    threading_module,
    time_module,
)


class _Weakref(types.ModuleType):
    """`weakref` with references that are followed, see `lifetimes`."""

    def __init__(self) -> None:
        import weakref

        super().__init__("weakref", weakref.__doc__)
        self.__dict__.update({k: v for k, v in vars(weakref).items() if not k.startswith("__")})
        self.__dict__.update(weak_containers())
        self.__dict__.update(
            ref=WeakReference, ReferenceType=WeakReference, finalize=Finalizer, proxy=proxy
        )


def _copied(module: types.ModuleType) -> types.ModuleType:
    copy = types.ModuleType(module.__name__, module.__doc__)
    copy.__dict__.update(vars(module))
    return copy


REBOUND: dict[str, tuple[str, ...]] = {
    "dataclasses": (
        "dataclass",
        "make_dataclass",
        "_process_class",
        "_get_field",
        "_is_type",
        "_create_fn",
        "_init_fn",
        "_repr_fn",
        "_frozen_get_del_attr",
        "_cmp_fn",
        "_hash_fn",
        "_hash_add",
        "_hash_set_none",
        "_hash_exception",
    ),
    "enum": ("global_enum",),
    "inspect": ("getmodule",),
    "pkgutil": ("resolve_name", "get_data"),
    "typing": ("get_type_hints",),
}
"""Functions that look for the modules of classes, which may be observed ones, in `sys.modules`, or make methods."""


def rebound(module: types.ModuleType, modules: Modules) -> types.ModuleType:
    """A copy of a module in which functions of `REBOUND` know these modules; all else are the same objects."""
    copy = _copied(module)
    own = copy.__dict__
    own["sys"] = _copied(sys)
    own["sys"].modules = modules
    for name in REBOUND[module.__name__]:
        real = own.get(name)
        if not isinstance(real, types.FunctionType):  # another version of Python does it elsewhere
            continue
        function = types.FunctionType(real.__code__, own, name, real.__defaults__, real.__closure__)
        function.__kwdefaults__ = real.__kwdefaults__
        own[name] = function
    if "_process_class" in own:
        observe_dataclasses(own)
        own["_process_class"] = _without_a_hash(own["_process_class"])
    return copy


def _without_a_hash(process: Callable[..., Any]) -> Callable[..., Any]:
    """`dataclass`, which makes no hash if the class has one: that of `build_class` is none of the program's."""

    def processed(kind: Any, *options: Any) -> Any:
        take_hash(kind)
        made = process(kind, *options)
        give_hash(made)
        return made

    return processed


_environ: list[Any] = []


def os_module(ex: PythonExecution) -> types.ModuleType:
    """`os` for one execution: the real one, with an environment of its own, which nobody asks to do anything at a fork.

    What a program changes in the environment is seen by the modules that are observed, and by no other process.
    """
    if not _environ:
        space = {k: v for k, v in vars(os).items() if not k.startswith("__")}
        space.update(putenv=lambda key, value: None, unsetenv=lambda key: None)
        _environ.append(observed_classes(os, ("_Environ",), **space)["_Environ"])
    copy = _copied(os)
    real: Any = os.environ
    codecs = (real.encodekey, real.decodekey, real.encodevalue, real.decodevalue)
    environ = _environ[0](dict(real._data), *codecs)
    for number, part in enumerate((environ, environ._data), 1):
        ex.records[id(part)] = ObjectRecord(part, "os.environ", OF_EXECUTION, number, True, None)

    def getenv(key: str, default: Any = None) -> Any:
        try:
            return environ[key]
        except KeyError:
            return default

    copy.__dict__.update(
        environ=environ, getenv=getenv, putenv=lambda key, value: None, unsetenv=lambda key: None,
        register_at_fork=lambda **callbacks: None, urandom=lambda size: _drawn().randbytes(size),
    )  # fmt: skip
    return copy


def _drawn() -> random.Random:
    """The generator of the calling thread, seeded with its number."""
    ex, thread = here()
    ex.changes(thread)
    ex.distinguished.setdefault(thread.tid, "it draws random numbers, which are its own")
    found = ex.generators.get(thread.tid)
    if found is None:
        found = ex.generators[thread.tid] = random.Random(thread.tid)
    return found


def uuid_module(ex: PythonExecution) -> types.ModuleType:
    """`uuid` for one execution: what it draws is the same in each."""
    copy = _copied(uuid)

    def uuid4() -> uuid.UUID:
        """A random UUID."""
        return uuid.UUID(int=_drawn().getrandbits(128), version=4)

    def uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
        """A UUID of the host and the time: here one that is drawn, too."""
        return uuid.UUID(int=_drawn().getrandbits(128), version=1)

    copy.__dict__.update(uuid4=uuid4, uuid1=uuid1)
    if sys.version_info >= (3, 14):
        copy.__dict__.update(_later_uuids(ex))
    return copy


_uuids: list[dict[str, Any]] = []


def _later_uuids(ex: PythonExecution) -> dict[str, Any]:
    """`uuid6` to `uuid8`, observed: the first two go on behind the last number, which all threads share."""
    names = ("uuid6", "uuid7", "uuid8")
    if not _uuids:
        space = {k: v for k, v in vars(uuid).items() if not k.startswith("__")}
        drawn = types.SimpleNamespace(urandom=lambda size: _drawn().randbytes(size))
        space.update(getnode=lambda: 1 << 40, os=drawn, time=time_module(ex))
        space["__builtins__"] = {**vars(builtins), "__import__": import_}
        _uuids.append(observed_classes(uuid, (*names, "_uuid7_get_counter_and_tail"), **space))
    own = _uuids[0]
    own.update(_last_timestamp_v6=None, _last_timestamp_v7=None, _last_counter_v7=0)
    own[MODULE_TOKEN] = ObjectRecord(own, "global uuid", OF_EXECUTION, 7, True, None)
    return {name: own[name] for name in names}


def queue_module(ex: PythonExecution) -> types.ModuleType:
    """`_queue`: what `queue` takes from C."""
    module = types.ModuleType("_queue")
    module.__dict__.update(SimpleQueue=SimpleQueue, Empty=Empty)
    return module


def random_module(ex: PythonExecution) -> types.ModuleType:
    """`random` for one execution: each thread has a generator of its own, seeded with its number."""
    module = types.ModuleType("random", random.__doc__)
    module.__dict__.update({k: v for k, v in vars(random).items() if not k.startswith("__")})

    def drawing(name: str) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            return library.call(getattr(_drawn(), name), 0, *args, **kwargs)

        return draw

    for name, value in vars(random).items():
        if isinstance(getattr(value, "__self__", None), random.Random):
            module.__dict__[name] = drawing(name)
    return module


class Modules(MutableMapping[str, Any]):
    """`sys.modules` of the execution that runs: its own modules, and the real ones of what is not observed."""

    __s_native__ = True

    def __init__(self, observes: Callable[[str], bool]) -> None:
        self._observes = observes
        """Whether modules in a module of the top level are observed."""
        self._known: dict[str, bool] = {}

    def _real(self, name: str) -> Any:
        """A module that all executions share; None if there is none, or an execution makes its own."""
        if name in PROVIDED or name in ABSENT or name not in sys.modules:
            return None
        top = name.partition(".")[0]
        observed = self._known.get(top)
        if observed is None:
            observed = self._known[top] = self._observes(top)
        return None if observed else sys.modules[name]

    def __getitem__(self, name: str) -> Any:
        ex = now.execution
        if ex is not None and name in ex.modules:
            return ex.modules[name]  # None: the program has forbidden the import
        found = self._real(name)
        if found is None:
            raise KeyError(name)
        return found

    def copy(self) -> dict[str, Any]:
        """A dict of all that there is now."""
        return dict(self)

    def __setitem__(self, name: str, module: Any) -> None:
        ex, _ = here()
        before = ex.modules.get(name)
        if before is not None and isinstance(module, types.ModuleType):
            # It takes the place of an observed one, while that is executed: so its submodules are observed, too.
            for key in (MARK, MODULE_TOKEN):
                if key in vars(before):
                    vars(module).setdefault(key, vars(before)[key])
        ex.modules[name] = module

    def __delitem__(self, name: str) -> None:
        ex, _ = here()
        if name not in ex.modules:
            raise KeyError(name)
        del ex.modules[name]

    def __iter__(self) -> Iterator[str]:
        ex = now.execution
        own = {} if ex is None else ex.modules
        real = [name for name in list(sys.modules) if name not in own and self._real(name)]
        return iter([*own, *real])

    def __len__(self) -> int:
        return len(list(iter(self)))


class ModulesOfProgram(Modules):
    """What a program sees in `sys.modules`: what was there before the search, and what this execution has imported.

    Whatever an earlier execution has imported, this one has not. Each name is a place, and which there are is one.
    C code goes through all in one operation, a `for` in one for each turn, as through a dict.
    """

    __s_native__ = True

    def _real(self, name: str) -> Any:
        ex = now.execution
        if ex is None or name in ex.search.there:
            return super()._real(name)
        brought = any(name in BROUGHT.get(loaded, ()) for loaded in ex.modules)
        return super()._real(name) if brought else None

    def _touch(self, name: object, write: bool) -> None:
        """Announce that the program reads or writes what has this name."""
        ex = now.execution
        if ex is not None and len(ex.heads) > 1:
            ex.need(MODULES_LOOKED_INTO, 0)
            ex.touch_module(str(name), write, site_of_caller())

    def _named(self, site: int = 0) -> dict[str, Any]:
        """All that there is, read in one operation."""
        ex = now.execution
        if ex is None:
            return {name: Modules.__getitem__(self, name) for name in Modules.__iter__(self)}
        if len(ex.heads) > 1 and (thread := ex.current) is not None:
            ex.need(MODULES_LOOKED_INTO, 0)
            ex.touch(thread, ex.module_names, CONTENTS, False, site or site_of_caller())
        own = ex.modules
        return {
            name: own[name] if name in own else self._real(name) for name in Modules.__iter__(self)
        }

    _all = _named

    def copy(self) -> dict[str, Any]:
        """A dict of all that there is now."""
        return self._named()

    def __s_live__(self, site: int, view: str = "keys") -> Iterator[Any]:
        """What a `for` goes through: others may import between two steps."""
        return _ModuleIteration(self, view, site)

    def __s_kept__(self, ex: PythonExecution, site: int) -> None:
        """An iterator of them is kept, or goes into another one: of that it is not seen what comes between two."""
        if len(ex.heads) > 1:
            ex.search.unseen[
                f"{where(site)} goes through sys.modules by an iterator while another thread may import"
            ] = None

    def __getitem__(self, name: str) -> Any:
        self._touch(name, False)
        return super().__getitem__(name)

    def __setitem__(self, name: str, module: Any) -> None:
        self._touch(name, True)
        super().__setitem__(name, module)

    def __delitem__(self, name: str) -> None:
        self._touch(name, True)
        super().__delitem__(name)

    def pop(self, name: str, *default: Any) -> Any:
        """One operation of a dict."""
        self._touch(name, True)
        try:
            found = super().__getitem__(name)
        except KeyError:
            if default:
                return default[0]
            raise
        super().__delitem__(name)
        return found

    def setdefault(self, name: str, default: Any = None) -> Any:
        """One operation of a dict."""
        self._touch(name, True)
        try:
            return super().__getitem__(name)
        except KeyError:
            super().__setitem__(name, default)
            return default

    def __iter__(self) -> Iterator[str]:
        return iter(self._named())

    def __len__(self) -> int:
        return len(self._named())

    def keys(self) -> Any:
        """The names."""
        return ModuleView(self, "keys")

    def values(self) -> Any:
        """The modules."""
        return ModuleView(self, "values")

    def items(self) -> Any:
        """Names and modules."""
        return ModuleView(self, "items")


class ModuleView(LiveView):
    """Names, values or both of `sys.modules`."""

    __s_native__ = True

    def __s_kept__(self, ex: PythonExecution, site: int) -> None:
        """As that of what it is a view of."""
        self._attributes.__s_kept__(ex, site)


class _ModuleIteration:
    """Goes through `sys.modules` itself, and announces each step."""

    __s_native__ = True

    def __init__(self, modules: ModulesOfProgram, view: str, site: int) -> None:
        self._modules, self._view, self._site = modules, view, site
        found = modules._named(site)
        self._names, self._size = iter(found), len(found)
        ex = now.execution
        self._loaded = 0 if ex is None else len(ex.modules)

    def __iter__(self) -> _ModuleIteration:
        return self

    def __next__(self) -> Any:
        ex, modules = now.execution, self._modules
        if ex is not None and len(ex.heads) > 1 and (thread := ex.current) is not None:
            ex.touch(thread, ex.module_names, CONTENTS, False, self._site)
            if len(ex.modules) != self._loaded:
                self._loaded = len(ex.modules)
                if sum(1 for _ in Modules.__iter__(modules)) != self._size:
                    raise RuntimeError("dictionary changed size during iteration")
        name = next(self._names)
        if self._view == "keys":
            return name
        try:
            module = Modules.__getitem__(modules, name)
        except KeyError:
            raise RuntimeError("dictionary keys changed during iteration") from None
        return module if self._view == "values" else (name, module)


OURS = str(Path(__file__).resolve().parent)


def _getframe(depth: int = 0) -> types.FrameType:
    """`sys._getframe`, as if the rewritten code called what it calls itself."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(OURS):
            if depth <= 0:
                return frame
            depth -= 1
        frame = frame.f_back
    raise ValueError("call stack is not deep enough")


class NoInput:
    """`sys.stdin` of an execution: the real one, from which nothing is read."""

    __s_native__ = True
    _reading = frozenset(("read", "readline", "readlines", "buffer", "__iter__", "__next__"))

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        if name in self._reading:
            raise refusal(f"sys.stdin.{name}", INPUT, sys._getframe(1))
        return getattr(self._real, name)

    def __iter__(self) -> Iterator[str]:
        raise refusal("sys.stdin", INPUT, sys._getframe(1))


def sys_module(ex: PythonExecution) -> types.ModuleType:
    """`sys` for one execution; the sandbox adds its modules."""
    copy = _copied(sys)
    copy.__dict__.update(
        _getframe=_getframe, meta_path=list(sys.meta_path), stdin=NoInput(sys.stdin)
    )
    # What a program sets in it (`sys.stdout`) is a global as that of an observed module.
    copy.__dict__[MODULE_TOKEN] = ObjectRecord(copy, "global sys", OF_EXECUTION, 3, True, None)
    return copy


_getters: dict[str, Any] = {}


def operator_module(ex: PythonExecution) -> types.ModuleType:
    """`operator` with the getters of the interpreter's `operator.py`: what they look into is observed."""
    names = ("attrgetter", "itemgetter", "methodcaller")
    if not _getters:
        known = observed_classes(operator, names)
        _getters.update({name: known[name] for name in names})
    copy = _copied(operator)
    copy.__dict__.update(_getters)
    return copy


def no_debugger(*args: object, **options: object) -> None:
    """`breakpoint` and `pdb.set_trace` in a program that runs thousands of times: refused before a debugger starts."""
    caller = _getframe()
    raise OutsideModel(
        f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}: a debugger cannot be entered while every schedule "
        "is run. Take out breakpoint() or pdb.set_trace(): the counterexample shows each step, and its replay stops in "
        "the debugger with --pdb"
    )


def no_breakpoint(*args: object, **options: object) -> object:
    """`breakpoint`: a hook of the program's own is called, and none with ``PYTHONBREAKPOINT=0``."""
    ex, _ = here()
    hook = getattr(ex.modules.get("sys"), "breakpointhook", sys.breakpointhook)
    if hook is not sys.breakpointhook:
        return hook(*args, **options)
    if os.environ.get("PYTHONBREAKPOINT") != "0":
        no_debugger()
    return None


def pdb_module(ex: PythonExecution) -> types.ModuleType:
    """`pdb` for one execution: the real one, which stops nowhere."""
    copy = _copied(importlib.import_module("pdb"))
    names = ("set_trace", "run", "runeval", "runcall", "post_mortem", "pm")
    copy.__dict__.update(dict.fromkeys(names, no_debugger))
    return copy


def atexit_module(ex: PythonExecution) -> types.ModuleType:
    """`atexit` for one execution: what is registered is run when the test returns."""

    def register(function: Callable[..., object], /, *args: Any, **options: Any) -> object:
        here()[0].at_exit.append(functools.partial(function, *args, **options))
        return function

    def unregister(function: Callable[..., object]) -> None:
        registered = here()[0].at_exit
        registered[:] = [each for each in registered if getattr(each, "func", each) != function]

    copy = _copied(atexit)
    copy.__dict__.update(register=register, unregister=unregister)
    return copy


PROVIDED: dict[str, Callable[[PythonExecution], types.ModuleType]] = {
    "threading": threading_module,
    "_thread": thread_module,
    "_threading_local": threading_local_module,
    "_queue": queue_module,
    "time": time_module,
    "random": random_module,
    "weakref": lambda ex: _Weakref(),
    "os": os_module,
    "uuid": uuid_module,
    "gc": gc_module,
    "sys": sys_module,
    "importlib": lambda ex: _copied(importlib),
    "operator": operator_module,
    "functools": functools_module,
    "pdb": pdb_module,
    "collections": collections_module,
    "contextlib": contextlib_module,
    "atexit": atexit_module,
}
"""Modules that are made for each execution."""

ABSENT = frozenset(("_asyncio",))
"""Modules that cannot be imported, so that the library takes its Python version of them."""
