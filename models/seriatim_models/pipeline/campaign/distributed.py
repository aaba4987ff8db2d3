"""One exhaustive search distributed over executors: the same traces as in one process, each found once.

The driver is the coordinator of `explorer.search.parallel`: it keeps the tree and gives away leaves. A task explores
below a leaf for a while (`subtree`); then it returns what it left open, and what it found for nodes above. Tasks are
items of a campaign, so one that hangs or dies is a result, and the search goes on: the subtree is asked for again, up
to the execution that was its end. What is below that one is lost, and the search is not exhausted.
Subtrees go out in rounds; rounds grow, so that the driver's work, and the wait for the last one of a round, weigh
little.

**Resuming after a kill.** What the search of a subtree returns depends only on where that begins: the steps to its
leaf, and who sleeps on the way. Its name is a hash of that. So the driver makes the same rounds again; where the
checkpoint log has the result of a subtree, it is taken, and the rest is asked for. A result is right for its name
whoever gave it, and however early it stopped. The text of the program is in the name too: results of another program
are not found.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
from pyspark.sql import SparkSession

from seriatim_models.explorer.model.program import Limits
from seriatim_models.explorer.search.frontier import (
    SEMANTIC,
    BranchData,
    Count,
    CountsData,
    SearchData,
    add_counts,
    plain,
)
from seriatim_models.explorer.search.parallel import EXECUTIONS_PER_TASK, Coordinator, WakeupNode
from seriatim_models.pipeline.campaign.checkpoint import CheckpointLog, log_folder
from seriatim_models.pipeline.campaign.items import ItemResult, SearchItem, items
from seriatim_models.pipeline.campaign.results import (
    BugTokens,
    Coverage,
    distinct_bugs,
    write_tables,
)
from seriatim_models.pipeline.campaign.run import (
    CampaignBounds,
    CampaignProgress,
    Tell,
    exclusive,
    fan_out,
)
from seriatim_models.pipeline.campaign.subtree import Subtree, fingerprint, runner_of
from seriatim_models.pipeline.errors import PipelineError

TASKS = 64
"""Leaves of one search in one round."""
GROWTH = 4
"""By how much the executions of a subtree grow from round to round."""
EXECUTIONS_MOST = 20_000
"""Of one subtree in one round."""
SECONDS_MOST = 5.0
"""Seconds after which a subtree's search returns what is left, whatever it may execute."""


class _Returned(msgspec.Struct):
    """What the search of a subtree returns (`parallel.answer`), with the part of it that is explored."""

    counts: CountsData
    outbox: tuple[list[Count], tuple[list[BranchData], list[list[Count]]]]
    search: SearchData | None
    share: Annotated[float, msgspec.Meta(ge=0, le=1)]


@dataclass
class Leaf:
    """A subtree that is still to be asked for."""

    trail: list[WakeupNode]
    weight: float
    """Which part of the tree is below it, by estimate."""
    most: int = EXECUTIONS_MOST
    """Executions that can be made below it before something ends the process."""


@dataclass
class DistributedSearch:
    """One search as the driver keeps it."""

    program: str
    mutant: str = ""
    max_steps: int = Limits.max_steps
    executions: int = EXECUTIONS_PER_TASK
    leaves: deque[Leaf] = field(default_factory=deque)
    done: float = 0.0
    """Which part of the tree is explored, by estimate. All parts below a node are taken for equally large, so it
    is too much at first, and right at last."""
    results: list[ItemResult] = field(default_factory=list)
    """Of its subtrees."""
    lost: int = 0
    """Subtrees in which not one execution could be made."""

    def __post_init__(self) -> None:
        self.runner = runner_of(self.program, self.mutant, self.max_steps)
        self.text = fingerprint(self.program, self.mutant)
        self.coordinator = Coordinator(self.runner)
        self.leaves.append(Leaf([self.coordinator.root], 1.0))

    def deal(self, bounds: CampaignBounds) -> list[tuple[Leaf, SearchItem]]:
        """The subtrees of the next round. Their names depend only on what was taken before."""
        out = []
        for _ in range(min(TASKS, len(self.leaves))):
            leaf = self.leaves.popleft()
            subtree = Subtree(self.text, self.coordinator.task(leaf.trail)["sequences"])
            item = SearchItem(
                self.program,
                self.mutant,
                executions=min(self.executions, leaf.most),
                seconds=min(SECONDS_MOST, bounds.timeout / 2),
                max_steps=self.max_steps,
                subtree=msgspec.json.encode(subtree).decode(),
                first_bug=bounds.first_bug,
            )
            out.append((leaf, item))
        self.executions = min(self.executions * GROWTH, EXECUTIONS_MOST)
        return out

    def take(self, leaf: Leaf, result: ItemResult) -> None:
        """Take the result of the subtree below a leaf: new leaves, counts, what is lost. Raises `PipelineError`."""
        self.results.append(result)
        if not result.returned and result.reached:
            leaf.most = result.reached
            self.leaves.append(leaf)
            return
        if not result.returned:
            self.lost += 1
            self.done += leaf.weight
            return
        alien = f"the result {result.id} is of no subtree of this search"
        returned = plain(result.returned.encode(), _Returned, alien, PipelineError)
        result.returned = ""  # all of them together would be large
        try:
            add_counts(self.runner, returned["counts"])
            self.coordinator.receive(returned, leaf.trail)
        except SEMANTIC as error:
            raise PipelineError(f"{alien}: {error!r}") from error
        fresh = list(self.coordinator.tasks)
        self.coordinator.tasks.clear()
        done = returned["share"]
        if returned["search"] is None:
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
        """Of the search so far: ok only if it is exhausted."""
        if any(o.bugs for o in self.results):
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
class DistributedResult:
    """The results of distributed searches."""

    searches: list[DistributedSearch]
    seconds: float

    @property
    def results(self) -> list[ItemResult]:
        """Of all subtrees."""
        return [r for search in self.searches for r in search.results]

    def bugs(self) -> BugTokens:
        """Distinct bugs; of each subtree the first of each kind."""
        return distinct_bugs(self.results)

    def coverage(self) -> dict[tuple[str, str], Coverage]:
        """Which traces were seen, by program and mutant."""
        return {
            (t.program, t.mutant): Coverage(t.verdict, t.exhausted, t.traces) for t in self.searches
        }


def searches(programs: Sequence[str], mutants: Iterable[str] = ("",)) -> list[tuple[str, str]]:
    """Every program with every mutant that fits it."""
    return [(i.program, i.mutant) for i in items(programs, list(mutants))]


def explore(
    spark: SparkSession,
    asked: Sequence[tuple[str, str]],
    folder: str | Path,
    *,
    bounds: CampaignBounds = CampaignBounds(),  # noqa: B008  # it is frozen
    executions: int = EXECUTIONS_PER_TASK,
    max_steps: int = Limits.max_steps,
    on_progress: Tell | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> DistributedResult:
    """Explore programs (each with a mutant in place of the reference, or "") exhaustively, and write the tables.

    Ends early when `stopping` says so, or at the first bug if the bounds do: then the checkpoint log is where to go on.
    Raises `PipelineError` if another campaign is at work in the folder.
    """
    if not asked:
        raise PipelineError("a campaign without items")
    folder = Path(folder).resolve()
    begun = time.monotonic()
    distributed = [
        DistributedSearch(program, mutant, max_steps, executions) for program, mutant in asked
    ]
    done = DistributedResult(distributed, 0.0)
    with exclusive(folder) as log:
        rounds = Rounds(distributed, log, on_progress)
        while any(t.leaves for t in distributed) and not stopping():
            if bounds.first_bug and done.bugs():
                break
            dealt = [(search, *given) for search in distributed for given in search.deal(bounds)]
            if missing := rounds.missing(item for _, _, item in dealt):
                fan_out(spark, missing, folder, bounds, rounds.tick, stopping)
            answered = 0
            for search, leaf, item in dealt:
                result = rounds.known.pop(item.id, None)
                if result is None:
                    search.leaves.append(leaf)
                else:
                    result.item = item.summary()
                    try:
                        search.take(leaf, result)
                    except PipelineError as error:
                        raise PipelineError(f"{log_folder(folder)}: {error}; remove it") from error
                    answered += 1
            if not answered and not stopping():
                raise PipelineError("the campaign broke off: no result is in its checkpoint log")
        done.seconds = time.monotonic() - begun
        write_tables(folder, done.results, done.coverage())
    return done


class Rounds:
    """The results that no search has taken yet, and the progress of all searches."""

    def __init__(
        self, searches: list[DistributedSearch], log: CheckpointLog, tell: Tell | None
    ) -> None:
        self._searches, self._log, self._tell = searches, log, tell
        self.known = {o.id: o for o in log.new_results()}
        self._asked: set[str] = set()
        self._begun, self._fresh = time.monotonic(), 0

    def missing(self, items: Iterable[SearchItem]) -> list[SearchItem]:
        """The items of a round that have no result yet."""
        all_of_it = list(items)
        self._asked = {i.id for i in all_of_it}
        return [i for i in all_of_it if i.id not in self.known]

    def tick(self) -> None:
        """Read new results, and report the progress."""
        news = {o.id: o for o in self._log.new_results()}
        self.known.update(news)
        self._fresh += sum(o.executions for o in news.values())
        if self._tell is not None:
            self._tell(self._progress())

    def _progress(self) -> CampaignProgress:
        waiting = [o for i in self._asked if (o := self.known.get(i)) is not None]
        taken = [(t.runner.executions, t.done) for t in self._searches]
        done = sum(n for n, _ in taken) + sum(o.executions for o in waiting)
        total = None
        if all(share for _, share in taken):
            total = max(done, round(sum(n / share for n, share in taken)))
        rate = self._fresh / max(time.monotonic() - self._begun, 1e-6)
        left = (total - done) / rate if rate and total is not None else None
        found = distinct_bugs([*waiting, *(o for t in self._searches for o in t.results)])
        return CampaignProgress(done, total, len(found), rate, left, "executions")
