"""Methods that `dataclasses` and `attrs` make of a text: what they read and write is observed as in any other method.

Both write a text for a class and run it. Where a program makes the class, the text is rewritten first.
"""

from __future__ import annotations

import ast
import builtins
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from seriatim_models.explorer.python.accesses import MARK, running
from seriatim_models.explorer.python.kept_inside import twinned
from seriatim_models.explorer.python.rewrite import MADE, rewritten_tree

COMPARED = "__s_with_lookups__"
OF_ATTRS = "<attrs generated "


@functools.cache
def _code(text: str, path: str) -> types.CodeType:
    """A text rewritten; behind its `__eq__` and `__hash__` lookups go on, see `called_back`."""
    tree = ast.parse(text, path)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in ("__eq__", "__hash__"):
            node.decorator_list.append(ast.Name(COMPARED, ast.Load()))
    return compile(rewritten_tree(tree, path), path, "exec", dont_inherit=True)


def run_text(text: str, space: Any, names: dict[str, Any]) -> None:
    """`exec` of `dataclasses`; `space` is that of the module of the class."""
    if space and MARK in space:
        builtins.exec(_code(text, MADE), space, names)
    else:
        builtins.exec(text, space, names)


def shown_once(function: Callable[[Any], str]) -> Callable[[Any], str]:
    """A `__repr__` that shows no object within itself, as `reprlib.recursive_repr`."""
    inside: set[tuple[int, object]] = set()

    @functools.wraps(function)
    def shown(obj: Any) -> str:
        key = id(obj), running()[1]
        if key in inside:
            return "..."
        inside.add(key)
        try:
            return function(obj)
        finally:
            inside.discard(key)

    return shown


def observe_dataclasses(own: dict[str, Any]) -> None:
    """Let the copy of `dataclasses` with these names make methods that are observed."""
    own.update(exec=run_text, _recursive_repr=shown_once, recursive_repr=lambda: shown_once)
    if "_hash_action" in own:
        real = own["_hash_action"]
        own["_hash_action"] = {k: f and own[f.__name__] for k, f in real.items()}
    if "_FuncBuilder" in own:
        kind = own["_FuncBuilder"]
        add = types.FunctionType(kind.add_fns_to_class.__code__, own)
        own["_FuncBuilder"] = type(kind.__name__, (kind,), {"add_fns_to_class": add})


class _Compat:
    """What the `__repr__` of `attrs` asks which objects its thread is showing."""

    __s_native__ = True

    def __init__(self, context: Any) -> None:
        self.repr_context = context


def _compile(text: Any, path: str, mode: str) -> types.CodeType:
    if running()[1] is None or not path.startswith(OF_ATTRS):
        return builtins.compile(text, path, mode)
    return _code(text, path)


def _eval(code: types.CodeType, space: Any, names: Any) -> Any:
    ex, thread = running()
    if ex is not None and thread is not None and code.co_filename.startswith(OF_ATTRS):
        space.update({"__builtins__": ex.program.sandbox.builtins, MARK: True})  # type: ignore[attr-defined]
        if "_compat" in space:
            space["_compat"] = _Compat(ex.modules["threading"].local())
    return builtins.eval(code, space, names)


def observe_attrs() -> None:
    """Let `attrs` make methods that are observed, if a program of an execution makes the class."""
    made = sys.modules.get("attr._make")
    if made is not None:
        vars(made).update(compile=_compile, eval=_eval)
        for name in ("attr._make", "attr._funcs", "attr._next_gen"):
            twinned(sys.modules[name], ("evolve", "asdict", "astuple", "_asdict_anything"))
