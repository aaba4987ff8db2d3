"""One search in several processes, with no redundancy.

A branch of an optimal search can not be explored by itself: while an elder sibling is explored, its races may still
add to what must be looked at below the younger one. But at the *end of a wakeup sequence* nothing sleeps any more.
From there on a search owes nothing to anybody: every trace that begins so is to be explored, and by it alone.
So the ends of wakeup sequences (leaves) are what is given away.

The master keeps the tree above: its nodes, the branches at each in order, and which of them are leaves.
A worker explores below its leaf. Races with steps above the leaf are not its own: it hands the sequences back.
The master leaves them at their node exactly as the search of one process would, with the elder siblings of the
worker's branch asleep and the younger ones as the wakeup tree; where that makes a new leaf, there is a new task.
After a portion of executions a worker hands back its whole stack, whose open leaves become tasks for others.

So the traces are the same, each found once; the split costs processes and messages.

Processes are forked, so that the program, which may be any closure, need not be sent.
`on_execution` is called in the workers: what it returns comes back, what it remembers does not.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from multiprocessing.connection import Connection, wait
from typing import Any

from seriatim_models.explorer.dpor import Branch, Node, Search
from seriatim_models.explorer.errors import ModelBug
from seriatim_models.explorer.frontier import (
    add_counts,
    counts,
    frozen_search,
    packed,
    thawed_branch,
    unpacked,
)
from seriatim_models.explorer.runner import Limits, Runner

PORTION = 200
"""Executions after which a worker hands back what is left, so that others can help."""


class Place:
    """A node of the tree that the master keeps: the state after `step` at its parent."""

    __slots__ = ("asleep", "children", "leaf", "step")

    def __init__(self, step: Branch | None, asleep: list[Branch]) -> None:
        self.step = step
        self.asleep = asleep
        """Who sleeps here from the start."""
        self.children: list[Place] = []
        self.leaf = False
        """Whether a task began here: then all that follows is covered."""

    def elders(self, child: Place) -> list[Branch]:
        """Who sleeps here while `child` is explored."""
        elders = list(self.asleep)
        for other in self.children:
            if other is child:
                break
            assert other.step is not None
            elders.append(other.step)
        return elders

    def add(self, step: Branch) -> Place:
        """A new youngest branch."""
        sleep = list(self.asleep) + [c.step for c in self.children if c.step is not None]
        mask = step.print.mask
        asleep = [s for s in sleep if s.tid != step.tid and not s.print.conf & mask]
        child = Place(Branch(step.tid, step.way, step.print), asleep)
        self.children.append(child)
        return child


class Master:
    """Gives away leaves and collects what comes back."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.space = runner.space
        self.root = Place(None, [])
        self.tasks: deque[list[Place]] = deque()
        """Each from the root to a leaf."""

    def take(self, data: dict[str, Any], way: list[Place]) -> None:
        """What came back from the task at the end of `way`: sequences for the nodes above, and its open stack."""
        space = self.space
        depths, sequences = data["outbox"]
        for depth, sequence in zip(depths, unpacked(sequences, space), strict=True):
            self._insert(way[: depth + 1], way[depth + 1], sequence)
        if data["search"] is None:
            return
        path = [thawed_branch(b, space) for b in data["search"]["path"]]
        here = way[-1]
        trail = list(way)
        given = len(way) - 1
        for depth in range(given, len(path)):
            sleep, tree = data["search"]["nodes"][depth]
            # What has been explored here is asleep from the start, for all that follows.
            here.asleep = [thawed_branch(b, space) for b in sleep]
            child = here.add(path[depth])
            for open_branch in tree:
                self._plant(trail, thawed_branch(open_branch, space))
            here = child
            trail = [*trail, child]
        for following in path[-1].children:
            self._plant(trail, following)
        if not path[-1].children:
            self._give(trail)

    def _plant(self, trail: list[Place], branch: Branch) -> None:
        """Copy an open wakeup tree to the end of `trail`, and give its leaves away."""
        trail = [*trail, trail[-1].add(branch)]
        while len(branch.children) == 1:
            branch = branch.children[0]
            trail.append(trail[-1].add(branch))
        for following in branch.children:
            self._plant(trail, following)
        if not branch.children:
            self._give(trail)

    def _give(self, trail: list[Place]) -> None:
        leaf = trail[-1]
        leaf.leaf = True
        if leaf.asleep:
            raise ModelBug("somebody sleeps at the end of a wakeup sequence")
        self.tasks.append(trail)

    def _insert(self, trail: list[Place], origin: Place, sequence: list[Branch]) -> None:
        """Leave a sequence, found below `origin`, at the end of `trail`, unless something covers it."""
        here = trail[-1]
        if any(weak_initial(s, sequence) is not None for s in here.elders(origin)):
            return
        rest = list(sequence)
        children = here.children[here.children.index(origin) + 1 :]
        while True:
            for child in children:
                assert child.step is not None
                k = weak_initial(child.step, rest)
                if k is None:
                    continue
                if k >= 0:
                    del rest[k]
                if child.leaf or not rest:
                    return
                trail = [*trail, child]
                children = child.children
                break
            else:
                break
        trail = list(trail)
        for step in rest:
            trail.append(trail[-1].add(step))
        self._give(trail)

    def task(self, trail: list[Place]) -> dict[str, Any]:
        """A task as plain data: a search whose floor is the leaf."""
        path = [p.step for p in trail if p.step is not None]
        elders = [trail[d].elders(trail[d + 1]) for d in range(len(trail) - 1)]
        return {"sequences": packed([path, *elders], self.space), "portion": PORTION}


def weak_initial(step: Branch, sequence: list[Branch]) -> int | None:
    """Can `step` come first in an execution that contains the sequence? Its place in it, -1 if it is not in it."""
    conf = step.print.conf
    for k, other in enumerate(sequence):
        if other.tid == step.tid:
            if other.way != step.way or any(s.print.mask & other.print.conf for s in sequence[:k]):
                return None
            return k
    if any(s.print.mask & conf for s in sequence):
        return None
    return -1


def explore_parallel(runner: Runner, jobs: int) -> None:
    """The search of `runner`, in `jobs` processes."""
    context = multiprocessing.get_context("fork")
    search = Search(runner)
    if run_portion(search):
        return
    master = Master(runner)
    master.take(answer(search, over=False), [master.root])
    workers: list[tuple[Any, Connection]] = []
    busy: dict[Connection, list[Place]] = {}
    idle: list[Connection] = []
    try:
        for _ in range(jobs):
            mine, its = context.Pipe()
            process = context.Process(target=work, args=(its, runner), daemon=True)
            process.start()
            its.close()
            workers.append((process, mine))
            idle.append(mine)
        while (master.tasks or busy) and not runner.over():
            while master.tasks and idle:
                connection = idle.pop()
                trail = master.tasks.pop()
                task = master.task(trail)
                if len(master.tasks) >= 2 * jobs:
                    task["portion"] = 20 * PORTION  # enough to do for everybody: talk less
                connection.send(task)
                busy[connection] = trail
            for ready in wait(list(busy), timeout=0.2):
                assert isinstance(ready, Connection)
                data = ready.recv()
                trail = busy.pop(ready)
                idle.append(ready)
                if "error" in data:
                    raise data["error"]
                add_counts(runner, data["counts"])
                if runner.found and not runner.limits.keep_going:
                    return
                master.take(data, trail)
        if not master.tasks and not busy:
            runner.exhausted = runner.cut == 0
            if runner.cut:
                runner.spent = f"max_steps={runner.limits.max_steps}"
    finally:
        for process, connection in workers:
            connection.close()
            process.terminate()
            process.join()


def run_portion(search: Search, executions: int = PORTION) -> bool:
    """Run a search for so many executions. True if it is over: all was seen, or a violation ends it."""
    return any(search.once() for _ in range(executions))


def answer(search: Search, over: bool) -> dict[str, Any]:
    """What a worker says after a portion."""
    space = search.runner.space
    return {
        "counts": counts(search.runner),
        "outbox": [[k[0] for k in search.outbox], packed(list(search.outbox.values()), space)],
        "search": None if over else frozen_search(search),
    }


def below(task: dict[str, Any], parent: Runner) -> Search:
    """A search that begins at a leaf, with counts of its own."""
    limits = Limits(max_steps=parent.limits.max_steps, keep_going=parent.limits.keep_going)
    runner = Runner(
        parent.program,
        parent.setting,
        limits,
        on_execution=parent.on_execution,
        count_traces=parent.seen is not None,
    )
    search = Search(runner)
    path, *elders = unpacked(task["sequences"], runner.space)
    search.floor = len(path)
    search.path = [Branch(b.tid, b.way, b.print) for b in path]
    search.nodes = [Node(sleep, []) for sleep in elders]
    return search


def work(connection: Connection, parent: Runner) -> None:
    """A worker: one task after another."""
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            search = below(task, parent)
            over = run_portion(search, task["portion"])
            connection.send(answer(search, over))
        except Exception as error:  # the master raises it
            connection.send({"error": error})
