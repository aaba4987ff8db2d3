"""Hold the programs of the call matrix against all systems of `spec/induction`, step by step.

python -m seriatim_workshop.formal.follow_matrix pull push --depth 1 --sample 100   # a slice, as in CI
python -m seriatim_workshop.formal.follow_matrix pull --depth 3                     # all of them, at night

A program is two calls beside each other from a state that earlier calls led to (`seriatim_models.matrix`). Exit code 1:
an execution is no behaviour of the systems.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any, SupportsIndex

import seriatim.queue as reference
from seriatim_models.explorer import World
from seriatim_models.machines.queue.calls import PushHarness
from seriatim_models.machines.stages import Stage, WorldStage
from seriatim_models.matrix.plan import plan
from seriatim_models.matrix.queue_scenes import QueueMatrixScene, QueueUniverse
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.matrix.work import PairData, universe_of
from seriatim_models.programs.base import Mutant
from seriatim_models.programs.mutant_modules import load, reference_classes
from seriatim_workshop.formal import journal
from seriatim_workshop.formal.exploring import explore_changed_into, explore_into
from seriatim_workshop.formal.followed import Followed, share
from seriatim_workshop.formal.recorder import Recorder

EACH = 40
"""So many executions of each program are followed at most."""


TOLD_EVERY = 500
"""After so many programs a long run says how far it is."""


def title(data: PairData) -> str:
    """What a program is called: its universe, the calls that lead to its state, and the two beside each other."""
    calls = f"{', '.join(map(str, data.path))}; {' | '.join(map(str, data.calls))}"
    return f"{data.universe}: {calls}"


class SubmittedJobs(list[Any]):
    """The jobs that wait: one that comes, or is taken, is a step that the follower of jobs sees."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    @property
    def value(self) -> int:
        """How many permits an executor would have."""
        return len(self)

    def append(self, job: object) -> None:
        """Note a permit that is given, as an executor's would be."""
        super().append(job)
        self.recorder.note("release", "jobs", new=1, source=self)

    def pop(self, at: SupportsIndex = -1) -> Any:  # Any: a job
        """Note a permit that is drawn."""
        job = super().pop(at)
        self.recorder.note("acquire", "jobs", source=self)
        return job


class FollowedScene(QueueMatrixScene):
    """A scene whose consumers' clients are woken by a step that the follower of wake-ups sees."""

    recorder: Recorder

    def __init__(self, universe: QueueUniverse, lib: ModuleType, stage: Stage) -> None:
        super().__init__(universe, lib, stage)
        self.given: set[str] = set()
        """Consumers with a wake-up that was not drawn."""
        if isinstance(self.harness, PushHarness):
            self.harness.jobs = SubmittedJobs(self.recorder)

    def notify_work(self, consumer: reference.Consumer) -> None:
        """Note the wake-up, as the permit of a client's thread would be, and do what the scene does."""
        self.recorder.note("release", f"{consumer.name}.wake")
        self.given.add(consumer.name)
        super().notify_work(consumer)

    def _pull(self, consumer: reference.Consumer) -> str:
        """Note that its wake-ups, if there are any, are drawn, and pull."""
        if consumer.name in self.given:
            self.given.remove(consumer.name)
            self.recorder.note("acquire", f"{consumer.name}.wake")
        return super()._pull(consumer)


def follow_pair(
    system: str, data: PairData, executions: int = EACH, mutant: Mutant | None = None
) -> Followed:
    """Follow the schedules of one program of the matrix; the first execution that is no behaviour ends it."""
    of, lib = SYSTEMS[system], load("queue", mutant)
    kind = of.empty
    assert isinstance(kind, type)
    assert issubclass(kind, QueueMatrixScene), "only systems of queues are followed"
    found = Followed(title(data))

    def build(world: World) -> None:
        scene_of = kind
        if isinstance(world, Recorder):
            scene_of = type("Scene", (FollowedScene, kind), {"recorder": world})
        stage = WorldStage(world, of.unrecorded)
        scene = replace(of, empty=scene_of).scene(universe_of(of, data.universe), lib, stage)
        for invocation in data.path:
            scene.make(invocation)
        for n, call in enumerate(data.calls, 1):
            world.spawn(partial(scene.make, call), name=f"T{n}")

    if mutant is None:
        explore_into(found, lib, build, executions)
    else:
        explore_changed_into(found, lib, build, reference_classes(lib), executions)
    return found


def programs(system: str, depth: int, sample: int = 0) -> list[PairData]:
    """The programs of a system of queues to this depth; `sample` of them, evenly spread, or all."""
    every = plan(system, depth).programs
    return every[:: max(1, len(every) // sample)] if sample else every


def main(arguments: Sequence[str]) -> int:
    """Follow what is asked for and print what came of it; the exit code is 1 if an execution is rejected."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.formal.follow_matrix",
        description="Hold the programs of the call matrix against the systems of spec/induction.",
    )
    parser.add_argument("systems", nargs="+", choices=("pull", "push"), metavar="pull|push")
    parser.add_argument("--depth", type=int, default=1, help="calls that lead to the state (1)")
    parser.add_argument("--sample", type=int, default=0, help="so many programs of each (all)")
    journal.add_option(parser)
    asked = parser.parse_args(arguments)
    outcomes = []
    for system in asked.systems:
        chosen = programs(system, asked.depth, asked.sample)
        for n, data in enumerate(chosen, 1):
            run = partial(follow_pair, system, data)
            outcome = journal.once(asked.journal, f"{system} {data.mode} {title(data)}", run)
            outcomes.append(outcome)
            if outcome.wrong:
                print(f"! {system}, {outcome.program}\n      {outcome.wrong}", flush=True)
            if asked.journal is not None and n % TOLD_EVERY == 0:
                print(f"  {system} {n:6,}/{len(chosen):,} programs", flush=True)
    steps, seconds = sum(o.steps for o in outcomes), sum(o.seconds for o in outcomes)
    print(
        f"{len(outcomes)} programs of the matrix, {sum(o.executions for o in outcomes):,} executions, "
        f"{steps:,} steps, {steps / max(seconds, 0.001):,.0f} a second\n"
        f"{share(outcomes):.1%} of shared writes are steps; "
        f"{sum(bool(o.wrong) for o in outcomes)} not as they must be"
    )
    return int(any(o.wrong for o in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
