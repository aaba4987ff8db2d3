"""Modules made anew for each execution: the user's, and those of the library that threads are made of.

Every execution begins with fresh module state. Each observed module is rewritten once (`rewrite`) and executed in each
execution, in a namespace whose `__builtins__` has an `__import__` of its own; so `sys.modules` is never touched, and
the same modules go on working for everybody else. Observed are: the module of the test, what lies neither in the
standard library nor among the installed packages, what `modules` names, and `queue` and `concurrent.futures`.
All other modules are the real ones.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import importlib.util
import sys
import sysconfig
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import greenlet  # type: ignore[import-untyped]  # greenlet ships no annotations

from seriatim_models.explorer.errors import Misuse, OutsideModel
from seriatim_models.explorer.model.guard import INSTEAD, lifted, name_of, refusing
from seriatim_models.explorer.python import asyncio_state
from seriatim_models.explorer.python.accesses import MARK, get, no_program, now, shows, touch_all
from seriatim_models.explorer.python.calls import call
from seriatim_models.explorer.python.class_checks import is_instance, is_subclass
from seriatim_models.explorer.python.classes import SUBCLASSES
from seriatim_models.explorer.python.execution import (
    BROUGHT,
    LIFETIMES,
    MODULES_LOOKED_INTO,
    PythonExecution,
    Search,
)
from seriatim_models.explorer.python.hooks import HOOKS, build_class, stable_id
from seriatim_models.explorer.python.imported_state import ImportedState, before_import
from seriatim_models.explorer.python.lifetimes import bury_and_call
from seriatim_models.explorer.python.made_methods import observe_attrs
from seriatim_models.explorer.python.places import GLOBALS, OF_EXECUTION
from seriatim_models.explorer.python.provided import (
    ABSENT,
    PROVIDED,
    REBOUND,
    Modules,
    ModulesOfProgram,
    no_breakpoint,
    rebound,
)
from seriatim_models.explorer.python.reached_state import NotKept
from seriatim_models.explorer.python.rewrite import MODULE_TOKEN, Unrewritable, rewritten

OF_THE_LIBRARY = frozenset(
    ("queue", "concurrent", "concurrent.futures", "concurrent.futures._base", "concurrent.futures.thread", "sched",
     "unittest", "unittest.case", "unittest.async_case", "unittest.mock", "unittest.util",
     "unittest._log")
)  # fmt: skip
"""Modules of the standard library that are observed."""


def of_the_library(name: str) -> bool:
    """Whether a module of the standard library is observed."""
    return name in OF_THE_LIBRARY or asyncio_state.is_asyncio(name)


_clock = (
    time.thread_time
)  # the real one, also while programs have another; what others do counts not
SLOWER = 5
"""So many times in a row is chance."""
IMPORTED_ANEW = frozenset((LIFETIMES, MODULES_LOOKED_INTO, SUBCLASSES))
"""What is promoted where an import shows in more than what it makes."""

STATELESS = frozenset(("queue", "concurrent.futures._base", "unittest.case", "unittest.util"))
"""Observed modules without state of their own: executed once in a search."""

NOT_OBSERVED = (
    "seriatim",
    "seriatim_models",
    "seriatim_workshop",
    "pytest",
    "_pytest",
    "hypothesis",
)
"""Never observed unless they are named."""

SHARED_WITH_C = frozenset(
    ("warnings", "_py_warnings", "copyreg", "encodings", "json", "numbers", "zoneinfo", "signal", "socket", "ssl")
)  # fmt: skip
"""Modules of which C code takes the real one: the filters of warnings, `JSONDecodeError`, the registry of `Number`.

The last three change `sys.modules` under their own name when they are executed.
"""

INSTALLED = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
)


@dataclass
class Found:
    """A module that is observed: where its source is."""

    name: str
    path: str
    source: str
    search_path: list[str] | None
    """Where its submodules are, None for a plain module."""


@dataclass
class Sources:
    """Which modules are observed, and what is known of them; the same in all executions of a search."""

    named: Sequence[str] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    """Files of modules that no finder would find, by name."""
    found: dict[str, Found | None] = field(default_factory=dict)

    def find(self, name: str, search_path: Sequence[str] | None) -> Found | None:
        """The observed module of this name, None if it is not observed."""
        if name not in self.found:
            self.found[name] = self._find(name, search_path)
        return self.found[name]

    def names(self, name: str) -> bool:
        """Whether a module is one of those that were named, or in one."""
        return any(name == n or name.startswith(n + ".") for n in self.named)

    def observes(self, top: str) -> bool:
        """Whether a module of the top level is observed, or a module in it is named."""
        return top in self.paths or self._find(top, None) is not None

    def _find(self, name: str, search_path: Sequence[str] | None) -> Found | None:
        if name in asyncio_state.PLATFORM:
            return self._read(name, asyncio_state.LOOP, None)
        if name in self.paths:
            return self._read(name, self.paths[name], None)
        named = self.names(name)
        parent_of_named = any(n.startswith(name + ".") for n in self.named)
        if not (named or parent_of_named or of_the_library(name)):
            top = name.partition(".")[0]
            if top in NOT_OBSERVED or top in sys.builtin_module_names:
                return None
            if top in sys.stdlib_module_names and not of_the_library(name):
                return None
        spec = _spec(name, search_path)
        if spec is None:
            if name in self.named:
                raise Misuse(f"modules={name!r}: there is no module of this name")
            return None
        origin = spec.origin or ""
        if not origin.endswith(".py"):
            if named and origin:
                raise Misuse(f"modules={name!r}: {origin} has no Python source to observe")
            return None
        if not (named or parent_of_named or of_the_library(name)) and origin.startswith(INSTALLED):
            return None
        return self._read(name, origin, spec.submodule_search_locations)

    def _read(self, name: str, path: str, locations: list[str] | None) -> Found:
        source = importlib.util.decode_source(Path(path).read_bytes())
        return Found(name, path, source, None if locations is None else list(locations))

    def digest(self) -> str:
        """Eight hexadecimal digits for the sources of all that is observed."""
        digest = hashlib.blake2b(digest_size=4)
        for name, found in sorted(self.found.items()):
            if found is not None and not of_the_library(name):
                digest.update(f"{name}\0{found.source}\0".encode())
        return digest.hexdigest()


def _spec(name: str, search_path: Sequence[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec: ModuleSpec | None = None if find is None else find(name, search_path)
        except KeyError as error:
            if error.args != (name.rpartition(".")[0],):
                raise
            # A folder without `__init__.py`: its parent is looked for in `sys.modules`, where no observed one is.
            continue
        if spec is not None:
            return spec
    return None


def _spec_of(finder: Any, name: str, search_path: Sequence[str] | None) -> ModuleSpec | None:
    """What a finder of the program finds; by ``find_module`` where the interpreter still asks it (up to 3.11)."""
    if hasattr(finder, "find_spec"):
        spec: ModuleSpec | None = finder.find_spec(name, search_path, None)
        return spec
    find = getattr(finder, "find_module", None) if sys.version_info < (3, 12) else None
    loader = None if find is None else find(name, search_path)
    return None if loader is None else importlib.util.spec_from_loader(name, loader)


def _is_namespace(module: Any) -> bool:
    """Whether a module is a package without a source of its own."""
    return hasattr(module, "__path__") and getattr(module, "__file__", None) is None


def _folders(name: str, parent: Any) -> list[str]:
    """The folders of a package without a source of its own, in a package that only executions have imported."""
    if parent is None or parent.__name__ in sys.modules:
        return []
    last = name.rpartition(".")[2]
    places = getattr(parent, "__path__", ())  # what a finder of the program made may have none
    return [str(at) for place in places if (at := Path(place) / last).is_dir()]


def outside(function: Callable[[], Any]) -> Any:
    """Call a function as if no program ran: what it makes is real."""
    with no_program():
        return greenlet.greenlet(function).switch()


def real_module(name: str) -> types.ModuleType:
    """The module of the interpreter, imported as if no program ran.

    What it has imported itself is there in each execution that imports it.
    """
    before = None if name in BROUGHT else set(sys.modules)
    with lifted() if name not in sys.modules else nullcontext():
        module = importlib.import_module(name)
    if before is not None:
        BROUGHT[name] = frozenset(sys.modules) - before
    return module


class Sandbox:
    """The modules of the executions of one search."""

    def __init__(self, sources: Sources, search: Search) -> None:
        self.sources = sources
        self.search = search
        self.builtins = {
            **vars(builtins),
            **HOOKS,
            **{
                name: refusing(name_of(owner, name), instead, getattr(owner, name))
                for owner, name, instead in INSTEAD
                if owner is builtins
            },
            "__import__": self.import_,
            "print": swallowed,
            "breakpoint": no_breakpoint,
            "__build_class__": build_class,
            "id": stable_id,
            "isinstance": is_instance,
            "issubclass": is_subclass,
        }
        if LIFETIMES in search.promoted:
            self.builtins["__s_call__"] = bury_and_call
        self.codes: dict[str, types.CodeType] = {}
        self.kept: dict[str, types.ModuleType] = {}
        """The modules that were executed once."""
        self.state: ImportedState | None = None
        """What an import has made, for the executions behind it."""
        self.keeps = not search.every_access and IMPORTED_ANEW.isdisjoint(search.promoted)
        """Whether the next import may be the last one."""
        self.imports = self.slower = 0
        self.import_took = 0.0
        self.refreshed: asyncio_state.Refreshed | None = None
        """What the modules of asyncio were given last."""
        self.keeping = 0
        """How many such modules are being executed: what they import outlives the execution, too."""

        def observes(top: str) -> bool:
            return of_the_library(top) or bool(outside(lambda: sources.observes(top)))

        self.modules = Modules(observes)
        self.modules_of_program = ModulesOfProgram(observes)

    def import_(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """`__import__` of observed modules."""
        ex = now.execution
        if ex is None:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        if level:
            package = (globals or {}).get("__package__") or (globals or {}).get("__name__", "")
            name = importlib.util.resolve_name("." * level + name, package)
        module = self.load(ex, name)
        for wanted in fromlist or ():
            if wanted != "*" and not hasattr(module, wanted) and hasattr(module, "__path__"):
                try:
                    submodule = self.load(ex, f"{name}.{wanted}")
                    if not hasattr(module, wanted):  # its body runs: they import each other
                        setattr(module, wanted, submodule)
                except ModuleNotFoundError as error:
                    if error.name != f"{name}.{wanted}":
                        raise
        return module if fromlist or level else self.load(ex, name.partition(".")[0])

    def import_module(self, name: str, package: str | None = None) -> Any:
        """`importlib.import_module` of observed modules."""
        ex = now.execution
        if ex is None:
            return importlib.import_module(name, package)
        return self.load(ex, importlib.util.resolve_name(name, package))

    def imported(self, ex: PythonExecution, name: str) -> Any:
        """The module of the test, imported before there are other threads, or as another execution has imported it."""
        main = ex.current
        assert main is not None
        begun = _clock()
        state, self.state = self.state, None
        if state is not None and state.space is ex.space:
            with suppress(NotKept):
                state.put_back(ex, main)
                if self._pays(_clock() - begun):
                    self.state = state
                return ex.modules[name]
            self.keeps = False
        # The first has also made what is made once.
        before = before_import(ex, main) if self.keeps and self.imports else None
        self.refreshed = None
        module = self.load(ex, name)
        self.import_took = _clock() - begun
        self.imports += 1
        if before is not None:
            try:
                self.state = ImportedState(
                    ex, main, before, self.refreshed, self.kept, id(self.builtins)
                )
            except NotKept:
                self.keeps = False
        return module

    def _pays(self, seconds: float) -> bool:
        """Whether to put an import back, which took so long, is not again and again slower than to do it anew."""
        self.slower = self.slower + 1 if seconds > self.import_took else 0
        self.keeps = self.keeps and self.slower < SLOWER
        return self.keeps

    def load(self, ex: PythonExecution, name: str) -> Any:
        """The module of this execution by its full name."""
        if self.keeping and self.sources.names(name) and not of_the_library(name):
            return outside(lambda: real_module(name))
        ex.imports(name)
        module = ex.modules.get(name)
        if module is not None:
            if ex.importing.get(name, ex.current) is not ex.current:
                # The interpreter would let this thread wait.
                self.search.unseen[f"two threads import {name} at once"] = None
            return module
        if name in ex.modules:
            raise ModuleNotFoundError(f"import of {name} halted; None in sys.modules", name=name)
        return self._load(ex, name)

    def _load(self, ex: PythonExecution, name: str) -> Any:
        ex.changes(ex.current)
        if name == "uvloop":
            raise OutsideModel(
                "uvloop is an event loop in C that no schedule controls: use the loop of asyncio in the test"
            )
        asynchronous = asyncio_state.is_asyncio(name)
        if asynchronous and "concurrent.futures" not in ex.modules:
            self.load(ex, "concurrent.futures")
        if name in self.kept:
            return self._again(ex, name, asynchronous)
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        parent = None
        given = name in self.sources.paths
        if "." in name and not given:
            parent = self.load(ex, name.rpartition(".")[0])
        if name in REBOUND or name in PROVIDED:
            return self._provided(ex, name)
        module = self._by_own_finder(ex, name, parent)
        if module is not None:
            return module
        found = None
        if parent is None or _is_namespace(parent) or MARK in vars(parent):
            path = None if parent is None else getattr(parent, "__path__", None)
            found = outside(lambda: self.sources.find(name, path))
        if found is None:
            return self._unobserved(ex, name, parent)
        if not (asynchronous or name in STATELESS):
            return self._execute(ex, found, parent)
        return self._first(ex, found, parent)

    def _provided(self, ex: PythonExecution, name: str) -> Any:
        """A module of the library that is not the real one."""
        if name in REBOUND:
            module = outside(lambda: rebound(real_module(name), self.modules))
            self.kept[name] = module
        else:
            module = outside(lambda: PROVIDED[name](ex))
        ex.modules[name] = module
        if name in REBOUND and "importlib" in module.__dict__:
            module.__dict__["importlib"] = self.load(ex, "importlib")
        if name == "sys":
            module.__dict__["modules"] = self.modules_of_program
        elif name == "importlib":
            module.__dict__.update(import_module=self.import_module, __import__=self.import_)
        return module

    def _by_own_finder(self, ex: PythonExecution, name: str, parent: Any) -> Any:
        """The module that an observed module has put a finder into `sys.meta_path` for, as six does; None if none."""
        known = ex.modules.get("sys")
        path = getattr(parent, "__path__", None)
        for finder in () if known is None else known.meta_path:
            if any(finder is real for real in sys.meta_path):
                continue
            spec = _spec_of(finder, name, path)
            if spec is not None and spec.loader is not None:
                if not hasattr(spec.loader, "exec_module"):
                    made = spec.loader.load_module(name)
                    module: types.ModuleType = ex.modules.setdefault(name, made)
                else:
                    module = spec.loader.create_module(spec) or types.ModuleType(name)
                    ex.modules[name] = module
                    spec.loader.exec_module(module)
                if parent is not None and not hasattr(parent, name.rpartition(".")[2]):
                    setattr(parent, name.rpartition(".")[2], module)
                return module
        return None

    def _unobserved(self, ex: PythonExecution, name: str, parent: Any) -> Any:
        """The real module, which all executions share."""
        if parent is not None and MARK in vars(parent) and not hasattr(parent, "__path__"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        folders = _folders(name, parent)
        module = types.ModuleType(name) if folders else outside(lambda: real_module(name))
        if name.partition(".")[0] in ("attr", "attrs"):
            observe_attrs()
        if folders:
            module.__path__ = folders
        elif _is_namespace(module):
            # Its attributes are modules, which may be observed: of the real one they would be the real ones.
            known = {n: v for n, v in vars(module).items() if n.startswith("__")}
            module = types.ModuleType(name)
            module.__dict__.update(known)
        ex.modules[name] = module
        if parent is not None and (
            folders
            or name in asyncio_state.REAL
            or parent.__name__ in PROVIDED
            or _is_namespace(parent)
        ):
            setattr(parent, name.rpartition(".")[2], module)
        return module

    def _first(self, ex: PythonExecution, found: Found, parent: Any) -> types.ModuleType:
        """A module that the next executions of this round will not execute again."""
        name = found.name
        asynchronous = asyncio_state.is_asyncio(name)
        before = set(ex.modules)
        self.keeping += 1
        try:
            with _unnumbered(ex):
                module = self._execute(ex, found, parent)
        finally:
            self.keeping -= 1
        module.__dict__[MODULE_TOKEN] = None
        self.kept[name] = module
        if not self.keeping:  # what its body has imported the next executions do not import for it
            for other in ex.modules.keys() - before - {name}:
                if not (asynchronous and asyncio_state.is_asyncio(other)):
                    del ex.modules[other]
        if asynchronous:
            asyncio_state.adapt(name, module)
        if name == "asyncio":
            self.refreshed = asyncio_state.refresh(ex)
            ex.has_threads()
        return module

    def _again(self, ex: PythonExecution, name: str, asynchronous: bool) -> types.ModuleType:
        """A module that an earlier execution of this round has executed."""
        if asynchronous and "asyncio" in self.kept:
            ex.modules.update({n: m for n, m in self.kept.items() if asyncio_state.is_asyncio(n)})
            self.refreshed = asyncio_state.refresh(ex)
            ex.has_threads()
        module = ex.modules[name] = self.kept[name]
        if "." in name and not asynchronous:
            setattr(self.load(ex, name.rpartition(".")[0]), name.rpartition(".")[2], module)
        return module

    def _execute(self, ex: PythonExecution, found: Found, parent: Any) -> types.ModuleType:
        module = types.ModuleType(found.name)
        package = found.search_path is not None
        token = ex.record(module, f"global {found.name}", True)
        ex.record(vars(module), GLOBALS + found.name, True)
        module.__dict__.update(
            __file__=found.path,
            __package__=found.name if package else found.name.rpartition(".")[0],
            __builtins__=self.builtins,
            __spec__=importlib.util.spec_from_file_location(
                found.name, found.path, submodule_search_locations=found.search_path
            ),
        )
        module.__dict__[MARK] = True
        module.__dict__[MODULE_TOKEN] = token
        if package:
            module.__path__ = found.search_path or []
        ex.modules[found.name] = module
        ex.importing[found.name] = ex.current
        try:
            exec(self._code(found), module.__dict__)
        except BaseException:
            ex.modules.pop(found.name, None)
            raise
        finally:
            del ex.importing[found.name]
        # Its body may have put another in its place.
        placed: types.ModuleType = ex.modules.get(found.name, module)
        if parent is not None:
            setattr(parent, found.name.rpartition(".")[2], placed)
        return placed

    def _code(self, found: Found) -> types.CodeType:
        code = self.codes.get(found.name)
        if code is None:
            start = f"global {found.name}."
            extra = {
                label.removeprefix(start)
                for label in self.search.promoted
                if label.startswith(start)
            }
            try:
                if asyncio_state.is_asyncio(found.name) and not asyncio_state.observed(self.search):
                    code = compile(found.source, found.path, "exec", dont_inherit=True)
                else:
                    code = rewritten(found.source, found.path, frozenset(extra))
            except Unrewritable as error:
                raise OutsideModel(str(error)) from None
            except SyntaxError as error:
                raise Misuse(f"{found.path}:{error.lineno}: {error.msg}") from None
            self.codes[found.name] = code
        return code


@contextmanager
def _unnumbered(ex: PythonExecution) -> Iterator[None]:
    """What the body makes has no numbers and no names: in the next execution it is there already."""
    numbers, records, maker = dict(ex.numbers), dict(ex.records), ex.acting
    objects = 0 if maker is None else maker.objects
    try:
        yield
    finally:
        ex.numbers.clear()
        ex.numbers.update(numbers)
        for key, record in list(ex.records.items()):
            if record is not records.get(key) and record.maker != OF_EXECUTION:
                del ex.records[key]
        if maker is not None:
            maker.objects = objects


def swallowed(*values: Any, file: Any = None, **options: Any) -> None:
    """`print` in a program that runs thousands of times: what it prints is read, and not shown.

    Into a file, or an output of its own that the program has put in the place of `sys.stdout`, it is written.
    """
    touch_all(False, 0, *values, deep=True)
    for value in values:
        shows(value, 0)
    ex = now.execution
    if file is None and ex is not None:
        file = get(ex.modules.get("sys", sys), "stdout", 0)
        if file is ex.search.stdout:
            file = sys.stdout  # `contextlib.redirect_stdout` has put another there
    if file is not None and ex is not None and file not in ex.search.outputs:
        ex.changes(ex.current)
        call(builtins.print, 0, *values, file=file, **options)


swallowed.__s_looks__ = True  # type: ignore[attr-defined]  # a round of a loop that prints changes nothing
