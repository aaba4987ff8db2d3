"""The search of one subtree of a distributed search, and of any item: what an executor does."""

from __future__ import annotations

import functools
import hashlib
import inspect
import time
from collections.abc import Callable
from typing import Any

import msgspec

from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.dpor import DporSearch, PathNode
from seriatim_models.explorer.search.parallel import answer, search_below
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.search.shrink import Shrinker
from seriatim_models.explorer.trace.replay_run import counterexample
from seriatim_models.pipeline.campaign.items import Bug, ItemResult, SearchItem
from seriatim_models.pipeline.campaign.search import canonical_trace, kind, run_search
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.check import Judge, runnable
from seriatim_models.programs.mutant_modules import texts

SHRINK_EXECUTIONS = 500
"""Executions spent on making a counterexample smaller, as a search in one process does."""


def run_item(item: SearchItem, reached: Callable[[int], None] = lambda _: None) -> ItemResult:
    """Do an item, in this process: the work of a campaign (`items.Work`)."""
    return run_subtree(item, reached) if item.subtree else run_search(item)


class Subtree(msgspec.Struct, frozen=True):
    """Where a subtree begins. Any: plain data of the explorer's own."""

    program: str
    """Hash of the text that is explored."""
    sequences: list[Any]
    """The steps to the leaf, and who sleeps at each node on the way (`frontier.packed`)."""


def runner_of(program: str, mutant: str, max_steps: int = Limits.max_steps) -> Runner:
    """An exploration of a program, judged by its properties, with nothing explored yet. It goes on after a bug."""
    of = PROGRAMS[program]
    wrong = MUTANTS[mutant] if mutant else None
    ids = (wrong.killed_by,) if wrong is not None else of.properties
    return Runner(
        runnable(of, wrong),
        Setting(real_time=of.real_time),
        Limits(keep_going=True, max_steps=max_steps),
        on_execution=Judge(ids),
    )


_parent = functools.cache(runner_of)
"""For all subtrees of one search: so what they intern is interned once in a process."""


def run_subtree(item: SearchItem, reached: Callable[[int], None]) -> ItemResult:
    """Explore below a leaf, for at most `item.executions` and `item.seconds`.

    `reached` is called after each execution with how many these were.
    """
    begun = time.perf_counter()
    subtree = msgspec.json.decode(item.subtree, type=Subtree)
    parent = _parent(item.program, item.mutant, item.max_steps)
    out = ItemResult(id=item.id, item=item.summary(), verdict="ok")
    first: dict[str, Bug] = {}
    with guarded():
        search = search_below({"sequences": subtree.sequences}, parent)
        out.depth, out.prefix = len(search.path), _prefix(search)
        if not search.path:
            search.nodes = [PathNode([], [])]
            _initial_checks(item, first)
        over = False
        for n in range(1, (item.executions or 1) + 1):
            over = search.once()
            if search.runner.found:
                _keep_bug(item, search.runner, first)
            reached(n)
            spent = item.seconds is not None and time.perf_counter() - begun > item.seconds
            if over or spent or (item.first_bug and first):
                break
        returned = answer(search, over)
        returned["share"] = 1.0 if over else search.explored()
    runner = search.runner
    out.complete, out.blocked, out.cut = runner.complete, runner.blocked, runner.cut
    out.steps = runner.steps
    out.traces = runner.complete - runner.redundant
    out.bugs = list(first.values())
    out.verdict = "violated" if first else "inconclusive" if runner.cut else "ok"
    if runner.cut:
        out.why = f"{runner.cut} executions were cut at max_steps={item.max_steps}"
    out.returned = msgspec.json.encode(returned).decode()
    out.seconds = time.perf_counter() - begun
    return out


def _initial_checks(item: SearchItem, first: dict[str, Bug]) -> None:
    """What a search in one process does first.

    It runs a schedule twice to see whether it is the only source of chance, and lets the threads take turns to see a
    livelock.
    """
    alone = SearchItem(item.program, item.mutant, executions=1, max_steps=item.max_steps)
    for bug in run_search(alone).bugs:
        first[bug.bug] = bug


def _keep_bug(item: SearchItem, runner: Runner, first: dict[str, Bug]) -> None:
    """Of each kind of bug the first in a subtree is kept, made small."""
    name_of_bug = kind(runner.found[0][1][0])
    if name_of_bug not in first:
        schedule, wrong = Shrinker(runner, SHRINK_EXECUTIONS).run()
        name = f"{item.program}+{item.mutant}" if item.mutant else item.program
        token = f"{name}:{counterexample(runner, name, schedule, wrong).token}"
        first[name_of_bug] = Bug(name_of_bug, canonical_trace(item, token), token)
    runner.found.clear()


def _prefix(search: DporSearch) -> str:
    """A path in words: each thread by its path from the set-up, with the way it took where that is not the first."""
    paths = search.runner.space.paths
    return " ".join(
        ".".join(map(str, paths[b.tid])) + (f":{b.alternative}" if b.alternative else "")
        for b in search.path
    )


@functools.cache
def fingerprint(program: str, mutant: str) -> str:
    """A hash of the text that is explored: the reference, as the mutant changes it, and the program."""
    of = PROGRAMS[program]
    module = inspect.getmodule(of.build)
    explored = [
        *texts(of.reference, MUTANTS[mutant] if mutant else None).values(),
        "" if module is None else inspect.getsource(module),
    ]
    return hashlib.blake2b("\0".join(explored).encode(), digest_size=8).hexdigest()
