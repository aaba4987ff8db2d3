"""One exhaustive search over executors: the same traces as in one process, each found once.

The driver is the coordinator of `explorer.parallel`: it keeps the tree and gives away leaves. A task explores
below a leaf for a while; then it hands back what it left open, and what it found for nodes above. Tasks are items of a
campaign (`Item.part`), so one that hangs or dies is a result, and the search goes on: the part is asked for again, up
to the execution that was its end. What is below that one is lost, and the search is not exhausted.
Parts go out in rounds; rounds grow, so that the driver's work, and the wait for the last part of a round, weigh little.

**Going on after a kill.** What a part says depends only on where it begins: the steps to its leaf, and who sleeps on
the way. Its name is a hash of that. So the driver makes the same rounds again; where the journal has the answer of a
part, it is taken, and the rest is asked for. An answer is right for its name whoever gave it, and however early it
stopped. The text of the program is in the name too: answers for another program are not found.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.dpor import DporSearch, PathNode
from seriatim_models.explorer.search.frontier import add_counts
from seriatim_models.explorer.search.parallel import (
    EXECUTIONS_PER_TASK,
    Coordinator,
    WakeupNode,
    answer,
    search_below,
)
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.search.shrink import Shrinker
from seriatim_models.explorer.trace.replay_run import counterexample
from seriatim_models.pipeline.campaign.checkpoint import Journal
from seriatim_models.pipeline.campaign.items import Bug, Item, Outcome, canonical, items, kind
from seriatim_models.pipeline.campaign.items import run as run_item
from seriatim_models.pipeline.campaign.run import (
    Bounds,
    Coverage,
    Found,
    Progress,
    Tell,
    at_work,
    bugs,
    fan_out,
    write,
)
from seriatim_models.pipeline.errors import PipelineError

TASKS = 64
"""Leaves of one search in one round."""
GROWTH = 4
"""How much longer the portions of a round are than those of the one before."""
PORTION_MOST = 20_000
"""Executions."""
PART_MOST = 5.0
"""Seconds after which a part hands back what is left, whatever its portion was."""
SHRINK = 500
"""Executions spent on making a counterexample smaller, as a search in one process does."""


class Part(msgspec.Struct, frozen=True):
    """Where a part begins. Any: plain data of the explorer's own."""

    program: str
    """Hash of the text that is explored."""
    sequences: list[Any]
    """The steps to the leaf, and who sleeps at each node on the way (`frontier.packed`)."""


# On the executors


def runner_of(program: str, mutant: str, max_steps: int = Limits.max_steps) -> Runner:
    """An exploration of a program, judged by its properties, with nothing explored yet. It goes on after a bug."""
    from seriatim_models.programs import MUTANTS, PROGRAMS
    from seriatim_models.programs.check import Judge, runnable

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
"""For its parts: so what they intern is interned once in a process."""


def run_part(item: Item, reached: Callable[[int], None]) -> Outcome:
    """Explore below a leaf, for a portion of executions."""
    begun = time.perf_counter()
    part = msgspec.json.decode(item.part, type=Part)
    parent = _parent(item.program, item.mutant, item.max_steps)
    out = Outcome(id=item.id, item=item.told(), verdict="ok")
    first: dict[str, Bug] = {}
    with guarded():
        search = search_below({"sequences": part.sequences}, parent)
        path = search.path
        out.depth, out.prefix = len(path), _said(search)
        if not path:
            search.nodes = [PathNode([], [])]
            _look(item, first)
        over = False
        for n in range(1, (item.executions or 1) + 1):
            over = search.once()
            if search.runner.found:
                _note(item, search.runner, first)
            reached(n)
            spent = item.seconds is not None and time.perf_counter() - begun > item.seconds
            if over or spent or (item.first_bug and first):
                break
        said = answer(search, over)
        said["share"] = 1.0 if over else search.share()
    runner = search.runner
    out.complete, out.blocked, out.cut = runner.complete, runner.blocked, runner.cut
    out.steps = runner.steps
    out.traces = runner.complete - runner.redundant
    out.bugs = list(first.values())
    out.verdict = "violated" if first else "inconclusive" if runner.cut else "ok"
    if runner.cut:
        out.why = f"{runner.cut} executions were cut at max_steps={item.max_steps}"
    out.answer = msgspec.json.encode(said).decode()
    out.seconds = time.perf_counter() - begun
    return out


def _look(item: Item, first: dict[str, Bug]) -> None:
    """What a search in one process does first: run a schedule twice to see whether it is the only source of chance,
    and let the threads take turns to see a livelock."""
    alone = Item(item.program, item.mutant, executions=1, max_steps=item.max_steps)
    for bug in run_item(alone).bugs:
        first[bug.bug] = bug


def _note(item: Item, runner: Runner, first: dict[str, Bug]) -> None:
    """Of each kind of bug the first of a part is kept, made small."""
    said = kind(runner.found[0][1][0])
    if said not in first:
        schedule, wrong = Shrinker(runner, SHRINK).run()
        name = f"{item.program}+{item.mutant}" if item.mutant else item.program
        token = f"{name}:{counterexample(runner, name, schedule, wrong).token}"
        first[said] = Bug(said, canonical(item, token), token)
    runner.found.clear()


def _said(search: DporSearch) -> str:
    """A path in words: each thread by its path from the set-up, with the way it took where that is not the first."""
    paths = search.runner.space.paths
    return " ".join(
        ".".join(map(str, paths[b.tid])) + (f":{b.alternative}" if b.alternative else "")
        for b in search.path
    )


# On the driver


@dataclass
class Leaf:
    """A part that is still to be asked for."""

    trail: list[WakeupNode]
    weight: float
    """Which part of the tree is thought to be below it."""
    most: int = PORTION_MOST
    """Executions that can be made below it before something kills the part."""


@dataclass
class Tree:
    """One search as the driver keeps it."""

    program: str
    mutant: str = ""
    max_steps: int = Limits.max_steps
    portion: int = EXECUTIONS_PER_TASK
    leaves: deque[Leaf] = field(default_factory=deque)
    done: float = 0.0
    """Which part of the tree is thought to be explored. All parts below a node are thought to be equally large, so it
    is too much at first, and right at last."""
    outcomes: list[Outcome] = field(default_factory=list)
    """Of its parts."""
    lost: int = 0
    """Parts that could not make one execution."""

    def __post_init__(self) -> None:
        self.runner = runner_of(self.program, self.mutant, self.max_steps)
        self.text = fingerprint(self.program, self.mutant)
        self.coordinator = Coordinator(self.runner)
        self.leaves.append(Leaf([self.coordinator.root], 1.0))

    def deal(self, bounds: Bounds) -> list[tuple[Leaf, Item]]:
        """The parts of the next round. Their names depend only on what was taken before."""
        out = []
        for _ in range(min(TASKS, len(self.leaves))):
            leaf = self.leaves.popleft()
            part = Part(self.text, self.coordinator.task(leaf.trail)["sequences"])
            item = Item(
                self.program,
                self.mutant,
                executions=min(self.portion, leaf.most),
                seconds=min(PART_MOST, bounds.timeout / 2),
                max_steps=self.max_steps,
                part=msgspec.json.encode(part).decode(),
                first_bug=bounds.first_bug,
            )
            out.append((leaf, item))
        self.portion = min(self.portion * GROWTH, PORTION_MOST)
        return out

    def take(self, leaf: Leaf, outcome: Outcome) -> None:
        """What came of a part."""
        self.outcomes.append(outcome)
        if not outcome.answer and outcome.reached:
            leaf.most = outcome.reached
            self.leaves.append(leaf)
            return
        if not outcome.answer:
            self.lost += 1
            self.done += leaf.weight
            return
        said = msgspec.json.decode(outcome.answer)
        outcome.answer = ""  # all of them together would be large
        add_counts(self.runner, said["counts"])
        self.coordinator.receive(said, leaf.trail)
        fresh = list(self.coordinator.tasks)
        self.coordinator.tasks.clear()
        done = said["share"]
        if said["search"] is None:
            done = 1 / (1 + len(fresh))  # it may have found what begins elsewhere
        elif not fresh:
            done = 1.0
        self.done += leaf.weight * done
        for trail in fresh:
            self.leaves.append(Leaf(trail, leaf.weight * (1 - done) / len(fresh)))

    @property
    def exhausted(self) -> bool:
        """Whether every trace was seen."""
        return not self.leaves and not self.lost and not self.runner.cut

    @property
    def traces(self) -> int:
        """Distinct ones."""
        return self.runner.complete - self.runner.redundant

    @property
    def verdict(self) -> str:
        if any(o.bugs for o in self.outcomes):
            return "violated"
        return "ok" if self.exhausted else "inconclusive"

    @property
    def why(self) -> str:
        """Why it is not exhausted."""
        why = [f"{len(self.leaves)} leaves are left"] if self.leaves else []
        if self.lost:
            why.append(f"what is below {self.lost} of them is lost")
        if self.runner.cut:
            why.append(f"{self.runner.cut} executions were cut at {self.max_steps} steps")
        return ", ".join(why)


@dataclass
class Exhaustive:
    """What exhaustive searches came to."""

    trees: list[Tree]
    seconds: float

    @property
    def outcomes(self) -> list[Outcome]:
        return [o for tree in self.trees for o in tree.outcomes]

    def bugs(self) -> Found:
        """Distinct bugs; of each part the first of each kind."""
        return bugs(self.outcomes)

    def coverage(self) -> dict[tuple[str, str], Coverage]:
        """What was seen, by program and mutant."""
        return {
            (t.program, t.mutant): Coverage(t.verdict, t.exhausted, t.traces) for t in self.trees
        }


@functools.cache
def fingerprint(program: str, mutant: str) -> str:
    """A hash of the text that is explored: the reference, as the mutant changes it, and the program."""
    from seriatim_models.programs import MUTANTS, PROGRAMS
    from seriatim_models.programs.mutant_modules import texts

    of = PROGRAMS[program]
    module = inspect.getmodule(of.build)
    explored = [
        *texts(of.reference, MUTANTS[mutant] if mutant else None).values(),
        "" if module is None else inspect.getsource(module),
    ]
    return hashlib.blake2b("\0".join(explored).encode(), digest_size=8).hexdigest()


def searches(programs: Sequence[str], mutants: Iterable[str] = ("",)) -> list[tuple[str, str]]:
    """Every program with every mutant that fits it."""
    return [(i.program, i.mutant) for i in items(programs, list(mutants))]


def explore(
    spark: SparkSession,
    asked: Sequence[tuple[str, str]],
    folder: str | Path,
    *,
    bounds: Bounds = Bounds(),  # noqa: B008  # it is frozen
    portion: int = EXECUTIONS_PER_TASK,
    max_steps: int = Limits.max_steps,
    on_progress: Tell | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Exhaustive:
    """Explore programs (each with a mutant in place of the reference, or "") exhaustively, and write the tables.

    Ends early when `stopping` says so, or at the first bug if the bounds do: then the journal is where to go on.
    Raises `PipelineError` if another campaign is at work in the folder.
    """
    if not asked:
        raise PipelineError("a campaign without items")
    folder = Path(folder).resolve()
    begun = time.monotonic()
    trees = [Tree(program, mutant, max_steps, portion) for program, mutant in asked]
    done = Exhaustive(trees, 0.0)
    with at_work(folder) as journal:
        rounds = Rounds(trees, journal, on_progress)
        while any(t.leaves for t in trees) and not stopping():
            if bounds.first_bug and done.bugs():
                break
            dealt = [(tree, *given) for tree in trees for given in tree.deal(bounds)]
            if missing := rounds.missing(item for _, _, item in dealt):
                fan_out(spark, missing, folder, bounds, rounds.tick, stopping)
            answered = 0
            for tree, leaf, item in dealt:
                outcome = rounds.known.pop(item.id, None)
                if outcome is None:
                    tree.leaves.append(leaf)
                else:
                    tree.take(leaf, outcome)
                    answered += 1
            if not answered and not stopping():
                raise PipelineError("the campaign broke off: no answer is in its journal")
        done.seconds = time.monotonic() - begun
        write(folder, done.outcomes, done.coverage())
    return done


class Rounds:
    """The answers of which nothing is made yet, and how far it all is."""

    def __init__(self, trees: list[Tree], journal: Journal, tell: Tell | None) -> None:
        self._trees, self._journal, self._tell = trees, journal, tell
        self.known = {o.id: o for o in journal.news()}
        self._asked: set[str] = set()
        self._begun, self._fresh = time.monotonic(), 0

    def missing(self, items: Iterable[Item]) -> list[Item]:
        """The items of a round that are to be tried: nobody has answered them."""
        all_of_it = list(items)
        self._asked = {i.id for i in all_of_it}
        return [i for i in all_of_it if i.id not in self.known]

    def tick(self) -> None:
        """Look for answers, and tell."""
        news = {o.id: o for o in self._journal.news()}
        self.known.update(news)
        self._fresh += sum(o.executions for o in news.values())
        if self._tell is not None:
            self._tell(self._progress())

    def _progress(self) -> Progress:
        waiting = [o for i in self._asked if (o := self.known.get(i)) is not None]
        taken = [(t.runner.executions, t.done) for t in self._trees]
        done = sum(n for n, _ in taken) + sum(o.executions for o in waiting)
        total = None
        if all(share for _, share in taken):
            total = max(done, round(sum(n / share for n, share in taken)))
        rate = self._fresh / max(time.monotonic() - self._begun, 1e-6)
        left = (total - done) / rate if rate and total is not None else None
        found = bugs([*waiting, *(o for t in self._trees for o in t.outcomes)])
        return Progress(done, total, len(found), rate, left, "executions")
