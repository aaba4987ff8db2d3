"""No two threads of any program use a plain attribute with nothing to order them.

A slice: the first executions of each program, of some of the matrix, and some generated ones.
`seriatim check --attributes` runs all programs.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seriatim_models.explorer import Dpor, World, explore
from seriatim_models.matrix.cells import explained
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.programs import PROGRAMS, Mutant, Program
from seriatim_models.programs.check import observed_classes, runnable
from seriatim_models.programs.mutant_modules import load, reference_classes
from seriatim_workshop.machines import concurrent
from seriatim_workshop.machines.client.generated_programs import PLANS as CLIENT
from seriatim_workshop.machines.fair.generated_programs import PLANS as FAIR
from seriatim_workshop.machines.log.generated_programs import PLANS as LOG
from seriatim_workshop.machines.log.generated_programs import LogPlan
from seriatim_workshop.machines.plans import ProgramPlan
from seriatim_workshop.machines.profiles import checking
from seriatim_workshop.machines.queue.generated_programs import plans
from seriatim_workshop.matrix_mutants import programs_of

PLANS: dict[str, st.SearchStrategy[ProgramPlan]] = {
    "queue": plans(),
    "client": CLIENT,
    "log": LOG,
    "fair": FAIR,
}


def races(program: Program, mutant: Mutant | None = None, executions: int = 15) -> str:
    """Return the first violation in so many executions, without the properties of the program."""
    found = explore(
        runnable(program, mutant),
        Dpor(real_time=program.real_time),
        attributes=observed_classes(program, load(program.reference, mutant)),
        max_executions=executions,
        shrink=0,
    )
    return "" if found.counterexample is None else found.counterexample.what


def races_of_plan(plan: ProgramPlan, mutant: Mutant | None = None) -> str:
    """Return the first violation in ten executions of a generated program; its harness is not observed."""
    lib = load(plan.system, mutant)

    def run(world: World) -> None:
        concurrent.build(plan, world, lib)

    found = explore(run, attributes=reference_classes(lib), max_executions=10, shrink=0)
    return "" if found.counterexample is None else found.counterexample.what


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda p: p.id)
def test_program_has_no_data_race(program: Program) -> None:
    assert races(program) == ""


@pytest.mark.parametrize(
    "system", [pytest.param(s, marks=[pytest.mark.slow] * (s == "queue")) for s in PLANS]
)
def test_generated_programs_have_no_data_race(system: str) -> None:
    @checking(20)
    @given(plan=PLANS[system])
    def look(plan: ProgramPlan) -> None:
        assert races_of_plan(plan) == "", plan.text()

    look()


def races_of_matrix(system: str, every: int, mutant: Mutant | None = None) -> list[str]:
    """Return the first violation in ten executions of every so many programs of the matrix, each; without ''."""
    of = SYSTEMS[system]
    lib = load(of.reference, mutant)
    observed = reference_classes(lib)
    found = []
    for data in programs_of(system, 1 if system in ("log", "fair", "pool") else 0)[::every]:
        result, _ = explained(
            of, lib, data.pair(of), attributes=observed, max_executions=10, shrink=0
        )
        if result.counterexample is not None:
            found.append(f"{data.key}: {result.counterexample.what}")
    return found


@pytest.mark.parametrize(
    ("system", "every"),
    [
        ("push", 8),
        ("pull", 8),
        ("handover", 16),
        ("log", 8),
        ("fair", 4),
        ("pool", 16),
        ("client", 8),
    ],
)
def test_programs_of_the_matrix_have_no_data_race(system: str, every: int) -> None:
    assert races_of_matrix(system, every) == []


def put_back(system: str, program: str, *edits: tuple[str, str]) -> Mutant:
    """Return a mistake that was found, as a mutant."""
    return Mutant("put-back", "", "", system, edits, "", program, 0)


TASKS = put_back(
    "client",
    "pool-together",
    (
        "            with self._lock:\n                task = self._tasks.popleft()",
        "            task = self._tasks.popleft()",
    ),
)
WIRE = put_back(
    "client",
    "rpc-close",
    (
        '        self._last = self._taken = _Link(Frame("open"))',
        "        self.frames: list[Frame] = []",
    ),
    (
        "        link = _Link(frame)\n        self._last.next = link\n        self._last = link\n",
        "        self.frames.append(frame)\n",
    ),
    (
        """        link = self._taken.next
        assert link is not None, "a permit stands for a frame"
        self._taken = link
        return link.frame
""",
        "        return self.frames.pop(0)\n",
    ),
)
STOPPING = put_back(
    "log",
    "",
    (
        "        with self._lock:\n            self._stopping = False\n",
        "        self._stopping = False\n",
    ),
)


@pytest.mark.parametrize(
    ("mutant", "label"),
    [
        (TASKS, "Executor._tasks (the contents)"),
        (WIRE, "Wire.frames (the contents)"),
    ],
    ids=["F-87", "F-88"],
)
def test_what_was_found_is_found_again(mutant: Mutant, label: str) -> None:
    program = PROGRAMS[mutant.program]
    assert races(program, mutant, 1000).startswith(f"data race: {label}: ")
    assert races(program, None, 1000) == ""


def test_f_87_is_found_again_by_the_matrix() -> None:
    found = races_of_matrix("pool", 16, TASKS)
    assert any(": data race: Executor._tasks (the contents): " in text for text in found)


def test_f_89_is_found_again_by_a_generated_program() -> None:
    plan = LogPlan.read(
        '{"threads": [[{"call": "disconnect", "arguments": {"channel": 0}}],'
        ' [{"call": "consume", "arguments": {"channel": 0}}]]}'
    )
    assert races_of_plan(plan, STOPPING).startswith("data race: Channel._stopping: ")
    assert races_of_plan(plan) == ""


def test_a_publication_that_is_torn_is_found_in_the_queue() -> None:
    """An entry's number is set before the entry is linked; if after, whoever reads it races."""
    late = put_back(
        "queue",
        "enqueue-enqueue",
        (
            "            node.id = tail.id + 1\n            if tail.next.compare_and_set(None, node):\n",
            "            if tail.next.compare_and_set(None, node):\n                node.id = tail.id + 1\n",
        ),
    )
    program = PROGRAMS["enqueue-enqueue"]
    assert races(program, late, 1000).startswith("data race: QueueEntry.id: ")
