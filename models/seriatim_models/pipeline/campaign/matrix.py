"""The matrix over executors: items are batches of its programs, wave by wave, as in one process.

What was capped in a wave comes again in the next one, with a larger budget. The programs of a batch that was lost
(its process hung, died or took all memory) come again alone, so that only the one to blame has no result; it is
tried again in the next wave, and if it has none in the end, its cell is inconclusive.

**Resuming after a kill.** The checkpoint log has what came of each batch; programs with a result there are left out.
A file beside it names the sources, system and depth that the results are of: others are refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from seriatim_models.files import decoded, read_document, write_whole
from seriatim_models.matrix.work import (
    PAIRS_PER_ITEM,
    Done,
    JournalHeader,
    PairBatch,
    PairData,
    Waves,
    differing,
    do,
)
from seriatim_models.pipeline.campaign.checkpoint import CheckpointLog
from seriatim_models.pipeline.campaign.items import ItemResult, SearchItem
from seriatim_models.pipeline.campaign.run import (
    CampaignBounds,
    CampaignProgress,
    Tell,
    exclusive,
    fan_out,
)
from seriatim_models.pipeline.errors import PipelineError

EXECUTIONS_PER_ITEM = 12_000
"""A batch has so many programs that it is not more, at most `PAIRS_PER_ITEM`, and at least one."""
EXECUTIONS_PER_SECOND = 50
"""So slow a program may be before its item is taken for one that hangs."""


# On the executors


def run_batch(item: SearchItem, reached: Callable[[int], None] = lambda _: None) -> ItemResult:
    """Run the programs of a batch: the work of a campaign (`items.Work`)."""
    begun = time.perf_counter()
    batch = msgspec.json.decode(item.batch, type=PairBatch)
    results: list[Done] = []
    for program in batch.programs:
        results += do(msgspec.structs.replace(batch, programs=(program,)))
        reached(sum(d.result.executions for d in results))
    found = [d.result for d in results]
    wrong, capped = (
        any(r.problem for r in found),
        any(not r.exhausted and not r.problem for r in found),
    )
    return ItemResult(
        id=item.id,
        item=item.summary(),
        verdict="violated" if wrong else "inconclusive" if capped else "ok",
        complete=sum(r.executions for r in found),
        returned=msgspec.json.encode(results).decode(),
        seconds=time.perf_counter() - begun,
    )


# On the driver


class MatrixCampaign:
    """The programs of one system's matrix, as a campaign in a folder."""

    def __init__(
        self, spark: SparkSession, waves: Waves, folder: str | Path, header: JournalHeader
    ) -> None:
        """`header` says what the results are of, as in a journal."""
        self.spark = spark
        self.waves = waves
        self.folder = Path(folder).resolve()
        self.header = header
        self.lost: dict[str, str] = {}
        """Programs that were lost when they came alone, and how, by key."""
        self._alone: dict[str, str] = {}
        """Item of one program -> key of the program."""

    def run(
        self,
        bounds: CampaignBounds,
        on_progress: Tell | None = None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run all waves, until `stopping`; the results are in `waves`.

        Raises `PipelineError` if the folder has results of something else, or another campaign is at work in it.
        """
        begun = time.monotonic()
        with exclusive(self.folder) as log:
            self._check_header()
            self._look(log)
            before = len(self.waves.results)

            def tick() -> None:
                self._look(log)
                if on_progress is not None:
                    done, total = len(self.waves.results), len(self.waves.programs)
                    rate = (done - before) / max(time.monotonic() - begun, 1e-6)
                    left = (total - done) / rate if rate else None
                    wrong = sum(bool(d.result.problem) for d in self.waves.results.values())
                    on_progress(CampaignProgress(done, total, wrong, rate, left, "programs"))

            for budget in self.waves.waves:
                for size in (programs_per_item(budget), 1):
                    pending = self.waves.pending(budget)
                    if stopping():
                        return
                    if pending:
                        work = list(self._items(pending, budget, size))
                        within = msgspec.structs.replace(
                            bounds, timeout=max(bounds.timeout, budget / EXECUTIONS_PER_SECOND)
                        )
                        fan_out(self.spark, work, self.folder, within, tick, stopping, run_batch)

    def _items(self, programs: Sequence[PairData], budget: int, size: int) -> Iterator[SearchItem]:
        system, mutant = self.waves.system, self.waves.mutant
        for at in range(0, len(programs), size):
            some = tuple(programs[at : at + size])
            batch = msgspec.json.encode(PairBatch(system, some, budget, mutant)).decode()
            item = SearchItem(f"matrix {system}", mutant, executions=budget, batch=batch)
            if size == 1:
                self._alone[item.id] = some[0].key
            yield item

    def _look(self, log: CheckpointLog) -> None:
        """Take in the results that are new in the log; it has them in no order."""
        mine = f"matrix {self.waves.system}", self.waves.mutant
        for result in log.new_results():
            if (result.item.program, result.item.mutant) != mine:
                continue
            if not result.returned:
                if key := self._alone.get(result.id):
                    self.lost[key] = f"{result.verdict}: {result.why}"
                continue
            fault = f"{self.folder}: the result {result.id} is of no batch"
            for done in decoded(result.returned.encode(), list[Done], fault, PipelineError):
                self.lost.pop(done.program.key, None)
                known = self.waves.results.get(done.program.key)
                if known is None or done.result.executions > known.result.executions:
                    self.waves.add(done)

    def _check_header(self) -> None:
        path = self.folder / f"matrix-{self.waves.system}.json"
        due = msgspec.json.encode(self.header)
        if not path.exists():
            write_whole(path, due, ours=True)
            return
        unsaid = "does not say of which matrix its results are"
        found = read_document(path, JournalHeader, unsaid, PipelineError)
        if found != self.header:
            raise PipelineError(
                f"{self.folder} has results of {differing(found, self.header)}; give another folder"
            )


def programs_per_item(budget: int) -> int:
    """Return how many programs a batch has in a wave of this budget."""
    return max(1, min(PAIRS_PER_ITEM, EXECUTIONS_PER_ITEM // budget))
