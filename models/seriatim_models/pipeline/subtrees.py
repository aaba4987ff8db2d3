"""One exhaustive search over executors: the same traces as in one process, each found once.

The driver is the master of `explorer.parallel`: it keeps the tree and gives away leaves. A round is a job: every task
explores below some leaves for a portion of executions and hands back what it left open and what it found for nodes
above. Rounds grow, so that the driver's part, and the wait for the last task of a round, weigh little.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from seriatim_models.explorer.dpor import Search
from seriatim_models.explorer.frontier import add_counts
from seriatim_models.explorer.guard import guarded
from seriatim_models.explorer.parallel import PORTION, Master, answer, below, run_portion
from seriatim_models.explorer.runner import Limits, Runner, Setting
from seriatim_models.pipeline.session import frame

TASKS = 64
"""Leaves of one round."""
GROWTH = 4
"""How much longer the portions of a round are than those of the one before."""
PORTION_MOST = 20_000

LEAF_SCHEMA = T.StructType([T.StructField("leaf", T.BinaryType(), False)])
"""A task of the master, as a pickle."""
ANSWER_SCHEMA = T.StructType(
    [T.StructField("number", T.LongType(), False), T.StructField("answer", T.BinaryType(), False)]
)
_ANSWERS = pa.schema([("number", pa.int64()), ("answer", pa.binary())])


def runner_of(program: str, mutant: str, keep_going: bool, seconds: float | None = None) -> Runner:
    """An exploration of a program, judged by its properties, with nothing explored yet."""
    from seriatim_models.programs import MUTANTS, PROGRAMS
    from seriatim_models.programs.check import Judge, runnable

    of = PROGRAMS[program]
    wrong = MUTANTS[mutant] if mutant else None
    ids = (wrong.killed_by,) if wrong is not None else of.properties
    return Runner(
        runnable(of, wrong),
        Setting(real_time=of.real_time),
        Limits(seconds=seconds, keep_going=keep_going),
        on_execution=Judge(ids),
    )


def explored(
    leaves: DataFrame, program: str, mutant: str, portion: int, keep_going: bool
) -> DataFrame:
    """`LEAF_SCHEMA` to `ANSWER_SCHEMA`: what is below each leaf, for so many executions."""

    def mapped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Any: a task is what the master makes it
        tasks: list[Any] = [pickle.loads(raw) for b in batches for raw in b["leaf"].to_pylist()]
        parent = runner_of(program, mutant, keep_going)
        for number, task in tasks:
            with guarded():
                search = below(task, parent)
                over = run_portion(search, portion)
                said = answer(search, over)
            yield pa.RecordBatch.from_arrays(
                [pa.array([number]), pa.array([pickle.dumps(said)], pa.binary())], schema=_ANSWERS
            )

    return leaves.mapInArrow(mapped, ANSWER_SCHEMA)


def explore(
    spark: SparkSession,
    program: str,
    mutant: str = "",
    *,
    keep_going: bool = False,
    seconds: float | None = None,
    portion: int = PORTION,
    on_progress: Callable[[Runner, int], None] | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Runner:
    """Explore a program (with a mutant in place of the reference) exhaustively; returns the runner with all counts.

    `on_progress` is called after each round with the runner and the number of open leaves.
    """
    runner = runner_of(program, mutant, keep_going, seconds)
    with guarded():
        search = Search(runner)
        over = run_portion(search, portion)
        first = answer(search, over)
    if over or runner.spent:
        return runner
    master = Master(runner)
    master.take(first, [master.root])
    length = portion
    while master.tasks and not runner.over() and not stopping():
        trails = [master.tasks.popleft() for _ in range(min(TASKS, len(master.tasks)))]
        rows = [(pickle.dumps((n, master.task(trail))),) for n, trail in enumerate(trails)]
        cores = spark.sparkContext.defaultParallelism
        leaves = frame(spark, rows, LEAF_SCHEMA, 2 * cores)
        for row in explored(leaves, program, mutant, length, keep_going).collect():
            data = pickle.loads(bytes(row["answer"]))
            add_counts(runner, data["counts"])
            master.take(data, trails[row["number"]])
        length = min(length * GROWTH, PORTION_MOST)
        if on_progress is not None:
            on_progress(runner, len(master.tasks))
        if runner.found and not keep_going:
            return runner
    runner.exhausted = not master.tasks and runner.cut == 0 and not runner.spent
    return runner
