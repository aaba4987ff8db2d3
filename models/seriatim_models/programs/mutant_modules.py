"""Loading a reference, or a mutant of it: the same source with a few words changed.

A *system* is one or more modules of `seriatim` that belong together. A mutant is a new set of all modules of its
system, of which one or more have the edits; their imports of each other find the new modules, not the right ones.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import linecache
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import CodeType, ModuleType

from seriatim_models.explorer.model.attributes import observable
from seriatim_models.programs.base import Mutant

SYSTEMS = {
    "queue": ("message", "groups", "queue", "handover"),
    "client": ("workpool", "broker", "client"),
    "log": ("log",),
    "fair": ("fair",),
}
"""The modules of each system; one imports only those before it. A system's name is what `reference` is elsewhere."""


class StaleMutant(Exception):
    """The reference no longer has the text that a mutant changes, or has it more than once."""


def system_of(module: str) -> str | None:
    """The system that `seriatim.<module>` is of; None for the host, which is of all."""
    return next((system for system, modules in SYSTEMS.items() if module in modules), None)


def source(module: str) -> str:
    """The text of `seriatim.<module>`."""
    return inspect.getsource(importlib.import_module(f"seriatim.{module}"))


def texts(system: str, mutant: Mutant | None = None) -> dict[str, str]:
    """The text of each module of a system, or of a mutant of it.

    Raises `StaleMutant` if what an edit replaces does not stand exactly once in the whole system.
    """
    found = {module: source(module) for module in SYSTEMS[system]}
    for old, new in mutant.edits if mutant is not None else ():
        count = {module: text.count(old) for module, text in found.items()}
        if sum(count.values()) != 1:
            raise StaleMutant(
                f"mutant {mutant.id if mutant else ''}: its text stands {sum(count.values())} times "
                f"in the reference {system}, not once: {old.strip().splitlines()[0]!r}"
            )
        module = max(count, key=count.__getitem__)
        found[module] = found[module].replace(old, new)
    return found


@cache
def load(system: str, mutant: Mutant | None = None) -> ModuleType:
    """One module with all names of a system, or of a mutant of it."""
    if mutant is None:
        return _merged(importlib.import_module(f"seriatim.{m}") for m in SYSTEMS[system])
    code = {}
    for module, text in texts(system, mutant).items():
        file = f"<mutant {mutant.id}: {module}.py>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        code[module] = compile(text, file, "exec")
    return run_modules(code, mutant.id.replace("-", "_"))


def reference_classes(lib: ModuleType) -> list[type]:
    """Return the classes that a system's modules define, or a mutant's, given what `load` returned."""
    return [
        cls
        for cls in vars(lib).values()
        if isinstance(cls, type)
        and cls.__module__.startswith("seriatim.")
        and cls.__module__ != "seriatim.host"
        and observable(cls)
    ]


def run_modules(
    code: Mapping[str, CodeType], suffix: str, names: Mapping[str, object] | None = None
) -> ModuleType:
    """Run the code of a system's modules as new modules, and return one module with all their names.

    The new modules are called ``seriatim.<module>__<suffix>``. `names` are defined in each before it runs.
    """
    new: dict[str, ModuleType] = {}

    def find(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`__import__`, but for the new modules."""
        if name in new and fromlist:
            return new[name]
        return builtins.__import__(name, globals, locals, fromlist or (), level)

    for name, instructions in code.items():
        module = ModuleType(f"seriatim.{name}__{suffix}")
        module.__file__ = instructions.co_filename
        sys.modules[module.__name__] = module  # dataclasses look their module up by name
        module.__dict__.update(names or {}, __builtins__={**vars(builtins), "__import__": find})
        exec(instructions, module.__dict__)
        new[f"seriatim.{name}"] = module
    return _merged(new.values())


def _merged(modules: Iterable[ModuleType]) -> ModuleType:
    """The module itself if it is one; else a module with the names of all."""
    *others, last = modules
    if not others:
        return last
    merged = ModuleType(last.__name__, last.__doc__)
    for module in (*others, last):
        merged.__dict__.update({k: v for k, v in vars(module).items() if not k.startswith("__")})
    return merged
