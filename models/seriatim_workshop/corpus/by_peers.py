"""The drivers of the corpus under other explorers of Python: `python by_peers.py PEER DRIVER SECONDS`.

It is run in the peer's environment, with one version of a library, so nothing of this project can be imported here.
A driver is cut at its `together(...)`: what stands before makes the state, its arguments are the threads, and what
stands behind is what must hold.
"""

from __future__ import annotations

import ast
import collections
import collections.abc
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

Driver = Callable[[], Generator[tuple[Callable[[], Any], ...]]]


class _Cut(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self.name = name
        self.threads = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self.generic_visit(node) if node.name == self.name else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "together"
        ):
            self.threads = len(call.args)
            node.value = ast.Yield(ast.Tuple(call.args, ast.Load()))
        return ast.fix_missing_locations(node)


def cut(name: str) -> tuple[Driver, int]:
    """A driver that yields its threads, and how many they are. Nothing is imported yet: a peer changes modules."""
    path = Path(__file__).with_name("drivers.py")
    space: dict[str, Any] = {}
    cutting = _Cut(name)
    exec(compile(cutting.visit(ast.parse(path.read_text("utf-8"))), path, "exec"), space)
    return space[name], cutting.threads


def holds(state: Any) -> bool:
    """Whether what a driver asserts at its end holds."""
    try:
        next(state[0], None)
    except AssertionError:
        return False
    return True


def by_frontrun(driver: Driver, threads: int, seconds: float) -> tuple[str, int]:
    """As it is by default: its optimal search, with its bound of two preemptions."""
    import frontrun as peer  # type: ignore[import-not-found]  # only in its own environment

    def setup() -> Any:
        running = driver()
        return running, next(running)

    begun = time.perf_counter()
    result = peer.explore(
        setup=setup, workers=[lambda state, n=n: state[1][n]() for n in range(threads)], invariant=holds,
        detect_io=False, stop_on_first=True, reproduce_on_failure=0, total_timeout=seconds,
    )  # fmt: skip
    verdict = {True: "ok", False: "violated", None: "unfinished"}[result.property_holds]
    if verdict == "ok" and time.perf_counter() - begun >= seconds:
        verdict = "unfinished"  # what it calls "holds" is then of those that it has run
    return verdict, result.num_explored


def by_interleave(driver: Driver, threads: int, seconds: float) -> tuple[str, int]:
    """As it is by default, between bytecodes, with the bound of two preemptions that it has."""
    import interleave_test as peer  # type: ignore[import-not-found]  # only in its own environment

    deadline = time.perf_counter() + seconds

    class TimedSearch(peer.DFSStrategy):  # type: ignore[misc]  # its types are not here
        def more(self) -> bool:
            return bool(super().more()) and time.perf_counter() < deadline

    folders = tuple(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))

    def forget() -> None:
        """Each execution imports the library anew: a lock that its module has made is no use in the next one."""
        for module in [
            n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(folders)
        ]:
            del sys.modules[module]

    next(driver())  # what the library imports of others is there once and for all
    forget()

    def model() -> None:
        forget()
        running = driver()
        bodies = next(running)
        for task in [peer.spawn(body) for body in bodies]:
            task.join()
        next(running, None)

    result = peer.explore(
        model, iterations=10**9, strategy=TimedSearch(2), granularity="opcode", exclude=[__file__],
        raise_on_failure=False,
    )  # fmt: skip
    if result.failure is not None:
        why = str(result.failure.exception or result.failure.kind)
        unable = ("No module named", "diverged", "only work inside")
        return f"{'refused' if any(u in why for u in unable) else 'violated'}: {why}"[
            :200
        ], result.schedules_run
    return "ok" if result.exhausted else "unfinished", result.schedules_run


def main() -> None:
    """Explore one driver by one peer and print a line of JSON."""
    warnings.simplefilter("ignore")
    logging.disable()
    for name in ("MutableMapping", "Mapping", "Callable", "Iterable", "MutableSet", "Sequence"):
        if not hasattr(collections, name):  # libraries from before Python 3.10
            setattr(collections, name, getattr(collections.abc, name))
    peer, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    explore = {"frontrun": by_frontrun, "interleave-test": by_interleave}[peer]
    driver, threads = cut(name)
    begun = time.perf_counter()
    try:
        verdict, executions = explore(driver, threads, seconds)
    except Exception as error:  # frontrun lets out what a thread raises
        verdict, executions = f"raised {type(error).__name__}: {error}"[:200], 0
    took = round(time.perf_counter() - begun, 2)
    print(json.dumps({"verdict": verdict, "executions": executions, "seconds": took}))


if __name__ == "__main__":
    main()
