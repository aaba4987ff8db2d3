"""The run of one system's matrix, which goes on where its journal ends."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from seriatim_models.cli.console import ProgressDisplay
from seriatim_models.cli.stop_request import StopRequest
from seriatim_models.cli.usage_errors import UsageError, sentence_of

if TYPE_CHECKING:
    from seriatim_models.matrix.plan import MatrixPlan
    from seriatim_models.matrix.totals import Matrix, ProgramRow
    from seriatim_models.matrix.work import Done, Journal

JOURNALS = Path("build/matrix")


def journal_path(system: str, depth: int, threads: int, *names: str) -> Path:
    """The journal of a run over the sources as they are: after a change of these it is another file."""
    from seriatim_models.matrix.work import code_digest

    parts = [system, str(depth), str(threads), *filter(None, names), code_digest()]
    name = "-".join(parts).replace("!", "not-").replace("*", "all")
    return JOURNALS / f"{name}.jsonl"


def _known(journal: Journal, fresh: bool) -> list[Done]:
    """What an earlier run kept; nothing of it if `fresh`. Raises `UsageError` for another run's journal."""
    from seriatim_models.matrix.work import WrongJournal

    if fresh:
        journal.path.unlink(missing_ok=True)
    try:
        return journal.read()
    except WrongJournal as error:
        raise UsageError(
            f"{error}; it is left as it is: give another --journal, or --fresh to begin again"
        ) from None


@dataclass(frozen=True)
class MatrixRun:
    """What came of a run: the table, and behind it the programs of each cell."""

    matrix: Matrix
    programs: dict[tuple[str, ...], list[ProgramRow]]
    mutant: str = ""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Programs without a result because their process was lost, and how, by key."""


@dataclass
class Run:
    """The run of one system."""

    system: str
    depth: int
    threads: int
    jobs: int
    budget: float | None
    universes: tuple[str, ...]
    stop: StopRequest
    mutant: str = ""
    begun: float = field(default_factory=time.monotonic)

    def matrix(self, path: Path, fresh: bool) -> MatrixRun:
        """Run all programs that have no result in the journal, and return the table with its programs."""
        from seriatim_models.matrix.work import (
            Journal,
            Waves,
            WrongJournal,
            performer,
            run_waves,
        )

        journal = Journal(path, self.system, self.depth, self.mutant)
        known = _known(journal, fresh)
        planned = self._plan()
        waves = Waves(self.system, planned.programs, mutant=self.mutant)
        for done in known:
            waves.add(done)
        progress = ProgressDisplay(len(planned.programs), "programs")
        with progress.running() as display:

            def keep(done: Done) -> None:
                journal.keep(done)
                display.completed(len(waves.results), self.system, done.program.key)

            try:
                run_waves(waves, performer(self.jobs), keep, self._over)
            except WrongJournal as error:
                raise UsageError(str(error)) from None
            finally:
                journal.close()
        return self._table(planned, waves.results.values())

    def campaign(self, folder: str, master: str | None = None) -> MatrixRun:
        """Run all programs that have no result in a folder's checkpoint log on Spark, and return the table.

        Raises `UsageError` if the folder cannot be used, or Spark cannot start, or breaks off.
        """
        from seriatim_models.matrix.work import Waves, header
        from seriatim_models.pipeline.errors import PipelineError
        from seriatim_models.pipeline.session import require, session

        try:
            require()
            from seriatim_models.pipeline.campaign.matrix import MatrixCampaign
            from seriatim_models.pipeline.campaign.run import CampaignBounds, CampaignProgress

            spark = session(master)
            planned = self._plan()
            waves = Waves(self.system, planned.programs, mutant=self.mutant)
            due = header(self.system, self.depth, self.mutant)
            work = MatrixCampaign(spark, waves, folder, due)
            progress = ProgressDisplay(len(planned.programs), "programs")
            with progress.running() as display:

                def show(p: CampaignProgress) -> None:
                    display.completed(p.done, self.system, f"{p.rate:,.1f}/s, {p.bugs} wrong")

                work.run(CampaignBounds(), show, self._over)
        except (OSError, PipelineError) as error:
            raise UsageError(sentence_of(error)) from error
        return self._table(planned, waves.results.values(), work.lost)

    def kept(self, path: Path) -> MatrixRun | None:
        """Return the table of a journal that has a result of every program; None if there is no such journal."""
        from seriatim_models.matrix.work import Journal, WrongJournal

        if not path.exists():
            return None
        try:
            known = Journal(path, self.system, self.depth, self.mutant).read()
        except WrongJournal:
            return None
        planned = self._plan()
        if {p.key for p in planned.programs} - {done.program.key for done in known}:
            return None
        return self._table(planned, known)

    def _plan(self) -> MatrixPlan:
        from seriatim_models.matrix.plan import plan

        until = None if self.budget is None else time.time() + self.budget
        return plan(
            self.system, self.depth, self.threads, self.jobs, self.universes, self.mutant,
            until, lambda: self.stop.asked,
        )  # fmt: skip

    def _table(
        self, planned: MatrixPlan, done: Iterable[Done], lost: Mapping[str, str] | None = None
    ) -> MatrixRun:
        from seriatim_models.matrix.systems import SYSTEMS
        from seriatim_models.matrix.totals import Matrix, add_up, by_cell
        from seriatim_models.matrix.work import call_names

        results = list(done)
        matrix = Matrix(
            self.system,
            self.depth,
            planned.states,
            planned.edges,
            call_names(SYSTEMS[self.system]),
            add_up(planned.programs, results),
            planned.problems,
            time.monotonic() - self.begun,
            planned.cut,
        )
        return MatrixRun(matrix, by_cell(planned.programs, results), self.mutant, lost or {})

    def _over(self) -> bool:
        spent = time.monotonic() - self.begun
        return self.stop.asked or (self.budget is not None and spent >= self.budget)
