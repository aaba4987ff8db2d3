"""Executors of tasks without Spark: in this process, or in worker processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from multiprocessing import get_context

from seriatim_models.pipeline.audit.tasks import Join, Step, TaskRecord


def grouped(records: Iterable[TaskRecord], fan: int) -> Iterator[list[TaskRecord]]:
    """The records of one run and property in the order of their numbers, `fan` neighbours at a time; 0: all."""
    ordered = sorted(records, key=lambda r: r[:3])
    for _, of in groupby(ordered, key=lambda r: (*r[:2], r.number // fan if fan else 0)):
        yield list(of)


class Inline:
    """Runs one task after the other in this process."""

    workers = 1

    def execute(
        self, tasks: Sequence[TaskRecord], step: Step, joins: Sequence[tuple[int, Join]] = ()
    ) -> list[TaskRecord]:
        """See `tasks.TaskExecutor`."""
        records = [record for task in tasks for record in step(task)]
        for fan, join in joins:
            records = [join(of) for of in grouped(records, fan)]
        return records


class Processes:
    """Runs tasks in so many worker processes, each task given to the next that is free."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def execute(
        self, tasks: Sequence[TaskRecord], step: Step, joins: Sequence[tuple[int, Join]] = ()
    ) -> list[TaskRecord]:
        """See `tasks.TaskExecutor`."""
        with get_context("spawn").Pool(self.workers) as pool:
            made = pool.imap(_Listed(step), tasks, chunksize=1)
            records = [record for of in made for record in of]
            for fan, join in joins:
                records = pool.map(join, grouped(records, fan), chunksize=1)
        return records


class _Listed:
    """A step whose records travel together; a class, so that it can be pickled."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def __call__(self, task: TaskRecord) -> list[TaskRecord]:
        return list(self.step(task))
