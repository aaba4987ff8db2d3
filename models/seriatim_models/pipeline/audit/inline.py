"""An executor of audit tasks without Spark: of the benchmark and tests of the tasks themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from seriatim_models.pipeline.audit.tasks import Join, Step, TaskRecord


def grouped(records: Iterable[TaskRecord], fan: int) -> Iterator[list[TaskRecord]]:
    """The records of one run and property in the order of their numbers, `fan` neighbours at a time; 0: all."""
    ordered = sorted(records, key=lambda r: r[:3])
    for _, of in groupby(ordered, key=lambda r: (*r[:2], r.number // fan if fan else 0)):
        yield list(of)


class Inline:
    """Runs one task after the other in this process. It divides a run as it would for so many workers."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers

    def execute(
        self, tasks: Sequence[TaskRecord], step: Step, joins: Sequence[tuple[int, Join]] = ()
    ) -> list[TaskRecord]:
        """See `tasks.TaskExecutor`."""
        records = [record for task in tasks for record in step(task)]
        for fan, join in joins:
            records = [join(of) for of in grouped(records, fan)]
        return records
