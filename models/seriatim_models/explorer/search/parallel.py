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
`on_execution` is called in the workers: what it returns comes back, what it remembers only if it is `Summing`.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from seriatim_models.explorer.errors import ExplorerError, ModelBug
from seriatim_models.explorer.model.program import Limits
from seriatim_models.explorer.search.dpor import Branch, Node, Search
from seriatim_models.explorer.search.frontier import (
    add_counts,
    counts,
    frozen_search,
    packed,
    thawed_branch,
    unpacked,
)
from seriatim_models.explorer.search.runner import Runner

PORTION = 200
"""Executions after which a worker hands back what is left, so that others can help."""

HAND = 20
"""The same for the master, who is asked for more by the others."""

BATCH = 32
"""Most tasks in one message."""

LAST_WORDS = 0.5
"""Seconds to wait for what is under way when a budget has run out."""


@dataclass
class Split:
    """What it cost to share a search. Not counted: each part runs the steps above its leaf once more to know them."""

    processes: int = 1
    parts: int = 0
    """How many pieces of the tree were given to a process."""
    handed_back: int = 0
    """Sequences that a part found for nodes above it."""
    repeated: int = 0
    """Executions of a trace that somebody had seen."""
    in_vain: int = 0
    """Executions that came to nothing, because all that could go on was asleep."""

    def __str__(self) -> str:
        return (
            f"{self.processes} processes shared the search in {self.parts} parts: "
            f"{self.repeated} executions repeated, {self.in_vain} in vain, "
            f"{self.handed_back} sequences handed from one part to another"
        )


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
        self.split = Split()

    def take(self, data: dict[str, Any], way: list[Place]) -> None:
        """What came back from the task at the end of `way`: sequences for the nodes above, and its open stack."""
        space = self.space
        depths, sequences = data["outbox"]
        self.split.parts += 1
        self.split.handed_back += len(depths)
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

    def lend_a_hand(self) -> None:
        """Explore below one leaf here, not for long: there is always somebody who works, however small the parts."""
        trail = self.tasks.pop()
        search = below(self.task(trail), self.runner, self.runner.seconds_left)
        over = run_portion(search, HAND)
        add_counts(self.runner, counts(search.runner))
        self.take(answer(search, over), trail)

    def task(self, trail: list[Place]) -> dict[str, Any]:
        """A task as plain data: a search whose floor is the leaf."""
        path = [p.step for p in trail if p.step is not None]
        elders = [trail[d].elders(trail[d + 1]) for d in range(len(trail) - 1)]
        return {"sequences": packed([path, *elders], self.space)}


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
    """The search of `runner`, in `jobs` processes, of which this is one."""
    search = Search(runner)
    if run_portion(search, PORTION) or runner.spent:
        return
    master = Master(runner)
    master.split.processes = jobs
    runner.split = master.split
    master.take(answer(search, over=False), [master.root])
    try:
        _share(runner, master, jobs)
    finally:
        master.split.repeated, master.split.in_vain = runner.redundant, runner.blocked


def _share(runner: Runner, master: Master, jobs: int) -> None:
    with Crew(runner, jobs - 1) as crew:
        while (master.tasks or crew.busy) and not runner.over():
            crew.employ(master)
            if master.tasks and runner.room > sum(crew.promised.values()):
                master.lend_a_hand()
            for trails, answers in crew.answered(0 if master.tasks else 0.2):
                for trail, data in zip(trails, answers, strict=True):
                    add_counts(runner, data["counts"])
                    master.take(data, trail)
            if runner.found and not runner.limits.keep_going:
                return
        if runner.spent:
            # What is under way was told to end now as well; it counts, though nothing is made of it.
            for _, answers in crew.answered(within=LAST_WORDS):
                for data in answers:
                    add_counts(runner, data["counts"])
            return
    runner.exhausted = runner.cut == 0
    if runner.cut:
        runner.spent = f"max_steps={runner.limits.max_steps}"


class Crew:
    """The processes, and what each of them is busy with."""

    def __init__(self, runner: Runner, jobs: int) -> None:
        self.runner = runner
        self.workers: list[tuple[Any, Connection]] = []
        self.busy: dict[Connection, list[list[Place]]] = {}
        """The leaves from which each is exploring."""
        self.idle: list[Connection] = []
        self.promised: dict[Connection, int] = {}
        """How many executions each may make at most."""
        context = multiprocessing.get_context("fork")
        for _ in range(jobs):
            mine, its = context.Pipe()
            process = context.Process(target=work, args=(its, runner), daemon=True)
            process.start()
            its.close()
            self.workers.append((process, mine))
            self.idle.append(mine)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for process, connection in self.workers:
            connection.close()
            process.terminate()
            process.join()

    def employ(self, master: Master) -> None:
        """Give tasks to all who have none: several small ones at a time where there are many, to talk less."""
        runner = self.runner
        while master.tasks and self.idle:
            room = runner.room - sum(self.promised.values())
            many = len(master.tasks) // (2 * len(self.workers))
            number = max(1, min(BATCH, many))
            portion = int(min((20 if many else 1) * PORTION, room))
            if portion < 1:
                return
            connection = self.idle.pop()
            trails = [
                master.tasks.popleft() for _ in range(number)
            ]  # the shallowest, so the largest
            tasks = [master.task(trail) for trail in trails]
            connection.send((tasks, portion, runner.seconds_left))
            self.busy[connection] = trails
            self.promised[connection] = portion

    def answered(self, within: float) -> Iterator[tuple[list[list[Place]], list[Any]]]:
        """Those who are done, with what they say."""
        for ready in wait(list(self.busy), timeout=within):
            assert isinstance(ready, Connection)
            try:
                answers = ready.recv()
            except EOFError as error:
                raise ExplorerError(
                    "a process that shared the search has ended: was it killed, or out of memory?"
                ) from error
            trails = self.busy.pop(ready)
            del self.promised[ready]
            self.idle.append(ready)
            if isinstance(answers, Exception):
                raise answers
            yield trails[: len(answers)], answers


def run_portion(search: Search, executions: int) -> bool:
    """Run a search for so many executions, within its budget. True if it is over: all was seen, or a violation."""
    runner = search.runner
    return any(not runner.over() and search.once() for _ in range(executions))


def answer(search: Search, over: bool) -> dict[str, Any]:
    """What a worker says after a portion."""
    space = search.runner.space
    return {
        "counts": counts(search.runner),
        "outbox": [[k[0] for k in search.outbox], packed(list(search.outbox.values()), space)],
        "search": None if over else frozen_search(search),
    }


def below(task: dict[str, Any], parent: Runner, seconds: float | None = None) -> Search:
    """A search that begins at a leaf, with counts of its own."""
    limits = Limits(
        seconds=seconds,
        max_steps=parent.limits.max_steps,
        keep_going=parent.limits.keep_going,
    )
    runner = Runner(
        parent.program,
        parent.setting,
        limits,
        on_execution=parent.on_execution if parent.summing is None else parent.summing.empty(),
        count_traces=parent.seen is not None,
        space=parent.space,
    )
    search = Search(runner)
    path, *elders = unpacked(task["sequences"], runner.space)
    search.floor = len(path)
    search.path = [Branch(b.tid, b.way, b.print) for b in path]
    search.nodes = [Node(sleep, []) for sleep in elders]
    return search


def work(connection: Connection, parent: Runner) -> None:
    """A worker: one message with tasks after another."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the master is told, and ends its workers
    while True:
        try:
            tasks, portion, seconds = connection.recv()
        except EOFError:
            return
        answers: Any = []
        try:
            for task in tasks:
                search = below(task, parent, seconds)
                over = run_portion(search, portion)
                answers.append(answer(search, over))
                portion -= search.runner.executions
        except Exception as error:  # the master raises it
            answers = error
        try:
            connection.send(answers)
        except (TypeError, AttributeError, pickle.PicklingError):
            connection.send(ExplorerError(f"{type(answers).__name__} in a process: {answers}"))
