"""Mutants of order: each operator makes what its example says, and the exhaustive programs tell right from wrong."""

import ast
import importlib
import json
import re
import resource
import signal
import textwrap
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from seriatim_models.explorer import Misuse, NondeterministicProgram, Random, World, explore
from seriatim_models.matrix.scene import Invocation
from seriatim_models.matrix.work import PairData
from seriatim_models.programs import PROGRAMS, Program
from seriatim_models.programs.check import Judge
from seriatim_models.programs.mutant_modules import load, source, system_of
from seriatim_workshop.mutation import order_tables
from seriatim_workshop.mutation.consequences import consequence
from seriatim_workshop.mutation.coverage import (
    PairProfile,
    ProgramProfile,
    SystemCoverage,
    block_name,
    probed,
    properties_of,
)
from seriatim_workshop.mutation.equivalent import EQUIVALENT, NO_EQUALITY, ORDER_EQUIVALENT
from seriatim_workshop.mutation.exhaustive import (
    BoundedCheck,
    CheckResult,
    Judgement,
    checks_of,
    judge_by,
    modules_with,
    problem_name,
)
from seriatim_workshop.mutation.operators import FILES, ROOT, Mutation
from seriatim_workshop.mutation.order import (
    BLOCK_OPERATORS,
    EXPRESSION_OPERATORS,
    OPERATORS,
    mutations_of,
    order_mutations,
)
from seriatim_workshop.mutation.order_tables import recorded, renewed
from seriatim_workshop.mutation.outcomes import OutcomeSet
from seriatim_workshop.mutation.processor_time import processor_seconds
from seriatim_workshop.mutation.run import (
    CAPPED,
    OUT_OF_TIME,
    MutantOutcome,
    open_journal,
    read_journal,
)
from seriatim_workshop.mutation.searching import Kill, kill_of, search

EXAMPLES = {
    "swapped": ("self.a.add(1); self.b.set(2)", "self.b.set(2); self.a.add(1)"),
    "moved-past-several": (
        "self.a.add(1); self.b.set(2); self.c.set(3)",
        "self.b.set(2); self.c.set(3); self.a.add(1)",
    ),
    "acts-before-it-checks": (
        "if self.a.compare_and_set(0, 1):\n    self.act()",
        "self.act()\nif self.a.compare_and_set(0, 1):\n    pass",
    ),
    "branches-swapped": (
        "if self.a.get():\n    return\nelif self.b.get():\n    self.act()",
        "if self.b.get():\n    self.act()\nelif self.a.get():\n    return",
    ),
    "conditions-swapped": (
        "return self.a.get() and self.take()",
        "return self.take() and self.a.get()",
    ),
    "lock-removed": ("with self.lock:\n    self.act()", "self.act()"),
    "lock-split": (
        "with self.lock:\n    x = self.a.get()\n    self.b.set(x)",
        "with self.lock:\n    x = self.a.get()\nwith self.lock:\n    self.b.set(x)",
    ),
    "before-the-lock": (
        "with self.lock:\n    x = self.a.get()\n    self.b.set(x)",
        "x = self.a.get()\nwith self.lock:\n    self.b.set(x)",
    ),
    "behind-the-lock": (
        "with self.lock:\n    x = self.a.get()\n    self.b.set(x)\n    return x",
        "with self.lock:\n    x = self.a.get()\n    result_ = x\nself.b.set(x)\nreturn result_",
    ),
    "into-the-lock": (
        "with self.lock:\n    self.act()\nself.b.set(1)",
        "with self.lock:\n    self.act()\n    self.b.set(1)",
    ),
    "read-before-the-lock": (
        "with self.lock:\n    if self.a.get():\n        self.act()",
        "early_ = self.a.get()\nwith self.lock:\n    if early_:\n        self.act()",
    ),
    "read-too-early": (
        "self.waiting.set(True)\nif self.a.get():\n    self.act()",
        "early_ = self.a.get()\nself.waiting.set(True)\nif early_:\n    self.act()",
    ),
    "compare-and-set-tried-once": (
        "while True:\n    x = self.a.get()\n    if self.a.compare_and_set(x, 1):\n        return",
        "while True:\n    x = self.a.get()\n    if self.a.compare_and_set(x, 1):\n        return\n    break",
    ),
    "while-made-if": (
        "while not self.a.get():\n    self.room.wait()",
        "while not self.a.get():\n    self.room.wait()\n    break",
    ),
    "read-before-the-loop": (
        "while True:\n    x = self.a.get()\n    if self.a.compare_and_set(x, 1):\n        return",
        "x = self.a.get()\nwhile True:\n    if self.a.compare_and_set(x, 1):\n        return",
    ),
    "condition-read-before-the-loop": (
        "while (x := self.a.get()) > 0:\n    self.a.compare_and_set(x, 1)",
        "x = self.a.get()\nwhile x > 0:\n    self.a.compare_and_set(x, 1)",
    ),
    "waits-before-it-checks": (
        "while not self.a.get():\n    self.room.wait()",
        "self.room.wait()\nwhile not self.a.get():\n    self.room.wait()",
    ),
    "behind-the-loop": (
        "for x in self.all:\n    self.act(x)\n    self.a.add(1)",
        "for x in self.all:\n    self.act(x)\nself.a.add(1)",
    ),
    "check-left-out": (
        "self.a.set(0)\nif self.b.get():\n    self.act()",
        "self.a.set(0)\nself.act()",
    ),
    "only-the-first": (
        "for x in self.all:\n    self.act(x)",
        "for x in self.all:\n    self.act(x)\n    break",
    ),
    "all-rather-than-one": (
        "for x in self.all:\n    if self.act(x):\n        return",
        "for x in self.all:\n    if self.act(x):\n        pass",
    ),
    "cleaned-up-only-if-all-went-well": (
        "try:\n    self.act()\nfinally:\n    self.a.set(0)",
        "self.act()\nself.a.set(0)",
    ),
    "compare-and-set-split": (
        "return self.a.compare_and_set(x, 1)",
        "return self.a.get() == x and self.a.set(1) is None",
    ),
    "set-without-comparing": (
        "return self.a.compare_and_set(x, 1)",
        "return self.a.set(1) is None",
    ),
    "expected-value-read-again": (
        "return self.a.compare_and_set(x, 1)",
        "return self.a.compare_and_set(self.a.get(), 1)",
    ),
    "addition-split": ("self.a.add(-1)", "self.a.set(self.a.get() + -1)"),
    "equal-for-identical": ("return self.a is x", "return self.a == x"),
    "notified-one-or-all": ("self._room.notify_all()", "self._room.notify()"),
    "iterated-over-a-copy": (
        "for x in self.all:\n    self.act(x)",
        "for x in list(self.all):\n    self.act(x)",
    ),
}
"""By operator: a method's body, and the body after one of the operator's changes."""


def method(body: str) -> str:
    text = textwrap.indent(body.replace("; ", "\n"), "        ")
    return ast.unparse(ast.parse(f"class C:\n    def f(self, x):\n{text}"))


@pytest.mark.parametrize("operator", EXAMPLES)
def test_an_operator_makes_what_its_example_says(operator: str) -> None:
    before, after = EXAMPLES[operator]
    made = list(mutations_of("example", ast.parse(method(before))))
    mine = [m.source for m in made if order_tables.operator_of(m) == operator]
    assert method(after) in mine, "\n".join(mine)


def test_a_lock_of_the_caller_is_given_up() -> None:
    text = (
        "class C:\n    def f(self):\n        with self._lock:\n            self._g()\n"
        "    def _g(self):\n        x = self.a.get()\n        self.b.set(x)"
    )
    wrong = (
        "class C:\n\n    def f(self):\n        with self._lock:\n            self._g()\n\n"
        "    def _g(self):\n        x = self.a.get()\n        self._lock.release()\n"
        "        self._lock.acquire()\n        self.b.set(x)"
    )
    made = list(mutations_of("example", ast.parse(text)))
    assert wrong in [m.source for m in made if order_tables.operator_of(m) == "lock-given-up"]


def test_objects_that_are_compared_by_identity_are_compared_by_value() -> None:
    made = mutations_of("example", ast.parse("@dataclass(frozen=True, eq=False)\nclass C: x: int"))
    assert [m.source for m in made] == ["@dataclass(frozen=True)\nclass C:\n    x: int"]


def test_every_operator_has_an_example_and_a_docstring() -> None:
    shown_apart = {"lock-given-up", "compared-by-value"}
    assert set(EXAMPLES) | shown_apart == set(OPERATORS)
    for operator in [*BLOCK_OPERATORS.values(), *EXPRESSION_OPERATORS.values()]:
        assert operator.__doc__


def test_what_uses_a_name_before_it_is_defined_is_not_made() -> None:
    text = method("x = self.a.get(); self.b.set(x)")
    made = mutations_of("example", ast.parse(text))
    assert not [m for m in made if order_tables.operator_of(m) == "swapped"]


@pytest.mark.slow
def test_each_mutation_of_order_is_another_module_that_compiles() -> None:
    for file in FILES:
        every = list(order_mutations(file))
        assert len({m.key for m in every}) == len(every)
        assert len({m.name for m in every}) == len(every)
        for m in every if file == "handover" else every[::40]:
            compile(m.source, m.name, "exec")


@pytest.mark.slow
def test_what_is_said_to_be_an_equivalent_order_is_a_mutation_still() -> None:
    gone = set(ORDER_EQUIVALENT) - {m.name for file in FILES for m in order_mutations(file)}
    assert not gone, f"the reference has changed: read again, or take out, {gone}"


def test_a_class_without_equality_has_none() -> None:
    for file, cls in (
        ("broker", "Wire"),
        ("log", "Channel"),
        ("queue", "Consumer"),
        ("queue", "QueueEntry"),
        ("queue", "State"),
    ):
        reference = getattr(importlib.import_module(f"seriatim.{file}"), cls)
        assert reference.__eq__ is object.__eq__
    named = {name for name, why in ORDER_EQUIVALENT.items() if why == NO_EQUALITY}
    assert {name.partition(".")[0] for name in named} == {"broker", "groups", "log", "queue"}


def test_the_page_counts_what_is_listed_as_equivalent() -> None:
    page = (ROOT / "spec" / "MUTATION.md").read_text(encoding="utf-8")
    table = page.partition("| file | listed as equivalent |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)\.py` \| (\d+) \|$", table, re.MULTILINE)
    listed = Counter(name.partition(".")[0] for name in EQUIVALENT)
    assert {file: int(n) for file, n in rows} == listed


# ---- judging


def small(system: str, block: str, only: str = "") -> SystemCoverage:
    """A coverage in which the smallest programs, or one, come to a block, and all properties hold in each."""
    ids = properties_of(system)

    def chosen(program: Program) -> bool:
        return program.id == only if only else program.traces < 40

    return SystemCoverage(
        {
            p.id: ProgramProfile(
                p.traces, True, 300, [block] if chosen(p) else [], list(ids), seconds=1
            )
            for p in PROGRAMS.values()
            if p.reference == system
        }
    )


def judged(
    file: str, text: str, known: SystemCoverage, most: int = 3000, block: str = "b"
) -> Judgement:
    system = system_of(file) or ""
    return judge_by(checks_of(system, block, known, most), modules_with(file, text), 600)


def mutant_of(name: str) -> Mutation:
    (found,) = [m for m in order_mutations(name.partition(".")[0]) if m.name == name]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "program", "by"),
    [
        (
            "queue.PushQueue._job: swapped: self._job_pending.set(False) | for consumer in self.all.consumers():",
            "push",
            "WK-1",
        ),
        (
            "queue.ConsumerList.add: swapped: self.size.add(1) | self.append(entry)",
            "consumer-list",
            "QL-2",
        ),
        (
            "queue.Queue._announce: swapped: self._rewind_all(entry) | self._returned(entry)",
            "release-passed",
            "WK-1",
        ),
        (
            "workpool.Executor.shutdown: notified-one-or-all: self._permits.release(self.size) once",
            "pool-shut-down",
            "AP-1",  # a worker waits for ever, and no other property speaks of it
        ),
        (
            "workpool.WorkPool.unregister_all_keys: into-the-lock: for key in keys:",
            "pool-fails",
            "CH-4",
        ),
        (
            "client.Connection.open_channel: lock-split: before channels = self._channels.get()",
            "open-while-closing",
            "RPC-1",
        ),
        (
            "client.Connection._on_gone: before-the-lock: self._gone = True",
            "queue-again",
            "data race",
        ),
        (
            "handover.Connection._schedule: compare-and-set-split: self._scheduled.compare_and_set(False, True)",
            "handover",
            "WK-6",
        ),
        (
            "handover.ConsumerTarget.process: only-the-first: for _ in range(len(self.consumers)):",
            "handover-second",
            "WK-1",
        ),
        (
            "handover.WorkSet.take: check-left-out: self._waiting.compare_and_set(waiting, waiting[1:] is true",
            "handover-two-threads",
            "WK-6",
        ),
    ],
)
def test_a_mistake_of_order_is_caught_in_its_program(name: str, program: str, by: str) -> None:
    file = name.partition(".")[0]
    known = small(system_of(file) or "", "b", program)
    found = judged(file, mutant_of(name).source, known)
    assert found.kill == Kill(by, program)


def test_the_right_reference_survives_and_what_it_never_comes_to_is_left_out() -> None:
    (mutant, *_) = order_mutations("fair")
    right = ast.unparse(mutant.tree)
    found = judged("fair", right, small("fair", "b"))
    assert found.kill is None
    assert not found.capped
    assert found.exit_code == 0
    programs = sum(p.traces < 40 for p in PROGRAMS.values() if p.reference == "fair")
    assert found.checks >= programs
    assert judged("fair", right, small("fair", "b"), block="another").checks == 0


def test_a_program_that_has_more_schedules_is_capped_and_clears_nobody() -> None:
    (mutant, *_) = order_mutations("fair")
    found = judged("fair", ast.unparse(mutant.tree), small("fair", "b"), most=3)
    assert found.kill is None
    assert "fair-park" in found.capped
    assert found.exit_code == CAPPED


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("fair.FairConsumer._visit: read-before-the-loop: with self._lock:", "AP-1"),
        (
            "fair.FairConsumer._take: moved-past-several: slot.waiting.popleft() to if not slot.waiting:",
            "FQ-3",  # it raises IndexError, the loop is gone, and what arrives waits for ever
        ),
        ("fair.FairConsumer._visit: lock-removed: with self._lock:", "data race"),
    ],
)
def test_what_fails_or_is_stuck_is_named(name: str, by: str) -> None:
    program = "fair-park" if by == "data race" else "fair-rounds"
    found = judged("fair", mutant_of(name).source, small("fair", "b", program))
    assert found.kill == Kill(by, program)


@pytest.mark.slow
def test_two_threads_in_one_connection_are_a_data_race_and_no_mistake_of_the_explorer() -> None:
    """Both move the targets' plain list of consumers, so what a thread does next depends on what no cell shows."""
    mutant = mutant_of(
        "handover.Connection.run: moved-past-several: "
        "while (session := self._sessions.take()) is not No to if not self._sessions.empty():"
    )
    lib = modules_with("handover", mutant.source)
    with pytest.raises(NondeterministicProgram, match="share what is no cell"):
        search(PROGRAMS["handover"], lib, Judge(()), 400)
    known = small("queue", "b", "handover")
    known.programs["handover"].properties = []
    found = judge_by(checks_of("queue", "b", known, 400), lib, 600)
    assert found.kill == Kill("data race", "handover")


def test_an_outcome_that_no_schedule_of_the_right_reference_has_is_a_kill() -> None:
    program = PROGRAMS["two-takers"]
    right, outcomes = modules_with("queue", source("queue")), OutcomeSet()
    assert search(program, right, Judge(()), 1000, outcomes=outcomes).exhausted
    known = small("queue", "b", "two-takers")
    known.programs[program.id].properties = []
    known.programs[program.id].outcomes = sorted(outcomes.found)
    assert judged("queue", source("queue"), known).kill is None
    wrong = source("queue").replace(
        "return self.state.compare_and_set(expected, new)",
        "self.state.set(new)\n        return True",
    )
    assert judged("queue", wrong, known).kill == Kill("outcome", "two-takers")


@pytest.mark.slow
def test_random_schedules_show_no_outcome_that_all_schedules_have_not() -> None:
    """What concerns one consumer is in an order that equivalent schedules agree on."""
    for id in ("release-own", "push-two", "settle", "log-crash", "fair-stop", "consume-and-close"):
        program = PROGRAMS[id]
        lib, outcomes = load(program.reference), OutcomeSet()
        assert search(program, lib, Judge(()), 3000, outcomes=outcomes).exhausted
        known = OutcomeSet(outcomes.found)

        def build(
            world: World,
            program: Program = program,
            lib: ModuleType = lib,
            known: OutcomeSet = known,
        ) -> None:
            program.build(world, lib)
            world.at_end(lambda: known.observe(world))

        result = explore(build, Random(seed=1), max_executions=60)
        assert result.verdict != "violated", f"{id}: {result.counterexample}"


def test_an_endless_loop_is_out_of_time_and_leaves_no_limit_behind() -> None:
    def endless(lib: ModuleType, until: float) -> CheckResult:
        while True:
            pass

    before = resource.getrlimit(resource.RLIMIT_CPU), signal.getsignal(signal.SIGPROF)
    monkey = BoundedCheck("endless", 0.0, endless)
    with processor_seconds(0.1) as limit:
        endless(ModuleType("none"), 0)
    assert limit.exceeded_in.endswith("endless")
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    assert (resource.getrlimit(resource.RLIMIT_CPU), signal.getsignal(signal.SIGPROF)) == before
    found = judge_by(iter([monkey]), ModuleType("none"), patience=0.1)
    assert found.exit_code == OUT_OF_TIME
    assert str(found).startswith("endless: in ")


def test_what_the_explorer_cannot_explore_is_no_kill_and_what_raises_is_one() -> None:
    def unexplorable(lib: ModuleType, until: float) -> CheckResult:
        raise Misuse("no")

    def raising(lib: ModuleType, until: float) -> CheckResult:
        raise KeyError("no")

    found = judge_by(iter([BoundedCheck("p", 0.0, unexplorable)]), ModuleType("none"))
    assert (found.kill, found.capped, found.exit_code) == (None, ["p"], CAPPED)
    found = judge_by(iter([BoundedCheck("p", 0.0, raising)]), ModuleType("none"))
    assert found.kill == Kill("raises KeyError outside the threads", "p")


def test_a_program_whose_seconds_are_spent_is_capped() -> None:
    known = small("fair", "b", "fair-stop")
    found = judge_by(checks_of("fair", "b", known), modules_with("fair", source("fair")), 0.01)
    assert found.kill is None
    assert found.exit_code == CAPPED


def test_what_has_a_few_more_schedules_with_a_mutant_is_run_to_its_end() -> None:
    """Ten over the right reference, as many as are run at first of what has more, and twelve over the mutant."""
    mutant = mutant_of("fair.FairConsumer.deliver: behind-the-lock: self.tokens.release()")
    lib = modules_with("fair", mutant.source)
    calls = tuple(Invocation("deliver", (slot, "1")) for slot in ("p0", "p1"))
    pair = PairData("two-slots", (), calls, ("", ""), "serve")
    known = small("fair", "b", "no program")
    known.pairs = [PairProfile("fair", pair, frozenset("b"), 10, True, 0.001)]
    found = judge_by(checks_of("fair", "b", known), lib)
    assert (found.checks, found.kill, found.capped) == (1, None, [])
    assert judge_by(checks_of("fair", "b", known, most=10), lib).capped


def test_seconds_that_are_spent_leave_checks_out() -> None:
    found = judge_by(
        iter([BoundedCheck("p", 0.0, lambda lib, until: CheckResult())] * 3), ModuleType("none"), -1
    )
    assert (found.checks, found.left_out, found.exit_code) == (0, 3, CAPPED)


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("QL-2: wrong", "QL-2"),
        ("outcome: m1 is gone", "outcome"),
        ("error: T1 raised KeyError: 'x' in step 3", "AP-1"),
        ("error: IndexError: pop", "AP-1"),
        ("deadlock: all wait", "AP-1"),
        ("settling: it never ends", "AP-1"),
        ("data race: two write it", "data race"),
    ],
)
def test_a_problem_of_the_matrix_has_a_name(what: str, name: str) -> None:
    assert problem_name(what) == name


def test_an_io_thread_that_goes_round_for_ever_is_a_livelock() -> None:
    text = source("handover")
    old = "target is not None and target.process():"
    assert text.count(old) == 1
    lib = modules_with(
        "handover", text.replace(old, "target is not None and (target.process() or True):")
    )
    program = PROGRAMS["handover-one"]
    found = search(program, lib, Judge(("WK-1",)), 10, 600)
    assert kill_of(program, found) == Kill("livelock", program.id)
    assert consequence(program, lib, ("WK-1", "AP-1"), None, 600) == Kill("AP-1", program.id)


@pytest.mark.slow
def test_every_block_of_a_mutant_has_a_probe() -> None:
    for file in FILES:
        if file == "host":
            continue
        probes = set(re.findall(r"reached_\('([^']+)'\)", ast.unparse(probed(file))))
        blocks = {block_name(file, m.path) for m in order_mutations(file)}
        assert blocks - {""} <= probes


# ---- the log and the page


def test_a_log_that_was_cut_in_a_line_goes_on(tmp_path: Path) -> None:
    row = {"key": "k", "name": "n", "outcome": "caught", "by": "ES-2 in two-takers", "seconds": 1}
    journal = tmp_path / "log.jsonl"
    journal.write_text(json.dumps(row) + '\n{"key": "half', "utf-8")
    assert read_journal(journal) == {"k": MutantOutcome("caught", "ES-2 in two-takers", 1)}
    with open_journal(journal) as out:
        out.write(json.dumps({**row, "key": "other"}) + "\n")
    assert list(read_journal(journal)) == ["k", "other"]


def test_the_tables_count_what_the_log_says() -> None:
    by_property, by_outcome, survived, capped, late, *_ = order_mutations("handover")
    outcomes = {
        by_property.key: MutantOutcome("caught", "WK-6 in handover", 1),
        by_outcome.key: MutantOutcome("caught", "outcome in push two: ; subscribe A", 1),
        survived.key: MutantOutcome("survived", "", 1),
        capped.key: MutantOutcome("inconclusive", "1 capped: handover", 1),
        late.key: MutantOutcome("out of time", "p: in f after 5 s without an end", 1),
    }
    mutants = [by_property, by_outcome, survived, capped, late]
    text = order_tables.tables(mutants, outcomes, {"handover": 9})
    assert "| `handover.py` | 9 | 5 | 1 | 1 | 0 | 0 | 1 | 1 | 1 | 40.0 % |" in text
    assert "| WK-6 | 1 |" in text
    assert f"- `{capped.name}`: 1 capped: handover" in text
    assert f"- `{late.name}`: p: in f after 5 s without an end" in text


def test_the_page_says_what_was_recorded_and_which_are_equivalent() -> None:
    page = (ROOT / "spec" / "MUTATION.md").read_text(encoding="utf-8")
    assert renewed(page) == page, "python -m seriatim_workshop.mutation.order_tables"
    for name, why in ORDER_EQUIVALENT.items():
        assert f"| {why} |" in page, name
    outcomes = recorded()
    listed = [m for file in FILES for m in order_mutations(file) if m.name in ORDER_EQUIVALENT]
    caught = [m.name for m in listed if order_tables.caught(outcomes.get(m.key))]
    assert not caught, "caught, though listed as equivalent"
