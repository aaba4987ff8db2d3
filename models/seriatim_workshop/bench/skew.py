"""What one queue that holds half of all events costs an audit, with 2 and with 4 workers.

    python -m seriatim_workshop.bench.skew [EVENTS]

Each task of the audit is done in this process and its processor time taken; then it is worked out when the last of
them would end, if whoever is free takes the next. So what else the machine does counts for little.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.audit.tasks import Join, Step, TaskRecord, audit_chunks
from seriatim_models.pipeline.synthetic.generate import generate
from seriatim_models.properties.blackbox import BLACKBOX

EVENTS = 1_000_000
HOT = 0.5
WORKERS = (2, 4)


class TimedInline(Inline):
    """Does tasks one after another, and knows when so many workers would have been done."""

    ended = total = 0.0

    def execute(
        self, tasks: Sequence[TaskRecord], step: Step, joins: Sequence[tuple[int, Join]] = ()
    ) -> list[TaskRecord]:
        """See `tasks.TaskExecutor`. Joins are taken to be done by one worker."""
        free = [0.0] * self.workers
        records: list[TaskRecord] = []
        for task in tasks:
            begun = time.process_time()
            records += step(task)
            free[free.index(min(free))] += time.process_time() - begun
        begun = time.process_time()
        joined = super().execute(records, lambda record: [record], joins)
        joining = time.process_time() - begun
        self.ended += max(free) + joining
        self.total += sum(free) + joining
        return joined


def main(events: int) -> None:
    """Print a line for each history and number of workers, and what the uneven one costs more."""
    ended: dict[tuple[float, int], float] = {}
    for hot in (0.0, HOT):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            generate(folder / "made", events, queues=1000, each=3, hot=hot)
            ingest(Inline(), plan([folder / "made"]), folder / "chunks")
            for workers in WORKERS:
                timed = TimedInline(workers)
                audit_chunks(timed, folder / "chunks", BLACKBOX, measure=False)
                ended[hot, workers] = timed.ended
                print(f"{hot:.0%} in one queue, {workers} workers: the last task ends after {timed.ended:.2f} s, "
                      f"{timed.total:.2f} s in all", flush=True)  # fmt: skip
    for workers in WORKERS:
        print(f"{workers} workers: {ended[HOT, workers] / ended[0.0, workers]:.2f} times")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
