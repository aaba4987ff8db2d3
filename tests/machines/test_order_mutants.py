"""Mutants of order: each operator makes what its example says, and the exhaustive programs tell right from wrong."""

import ast
import json
import re
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from seriatim_models.programs import PROGRAMS, Program
from seriatim_workshop.mutation import order_run
from seriatim_workshop.mutation.equivalent import EQUIVALENT, ORDER_EQUIVALENT
from seriatim_workshop.mutation.exhaustive import (
    Kill,
    ProgramProfile,
    block_name,
    judge_by_programs,
    modules_with,
    properties_of,
)
from seriatim_workshop.mutation.operators import FILES, ROOT
from seriatim_workshop.mutation.order import (
    BLOCK_OPERATORS,
    EXPRESSION_OPERATORS,
    OPERATORS,
    mutations_of,
    order_mutations,
)
from seriatim_workshop.mutation.run import MutantOutcome, open_journal, read_journal

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
    mine = [m.source for m in made if order_run.operator_of(m) == operator]
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
    assert wrong in [m.source for m in made if order_run.operator_of(m) == "lock-given-up"]


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
    assert not [m for m in made if order_run.operator_of(m) == "swapped"]


def test_each_mutation_of_order_is_another_module_that_compiles() -> None:
    for file in FILES:
        every = list(order_mutations(file))
        assert len({m.key for m in every}) == len(every)
        assert len({m.name for m in every}) == len(every)
        for m in every if file == "handover" else every[::40]:
            compile(m.source, m.name, "exec")


def test_what_is_said_to_be_an_equivalent_order_is_a_mutation_still() -> None:
    gone = set(ORDER_EQUIVALENT) - {m.name for file in FILES for m in order_mutations(file)}
    assert not gone, f"the reference has changed: read again, or take out, {gone}"


def test_the_page_counts_what_is_listed_as_equivalent() -> None:
    page = (ROOT / "spec" / "MUTATION.md").read_text(encoding="utf-8")
    table = page.partition("| file | listed as equivalent |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)\.py` \| (\d+) \|$", table, re.MULTILINE)
    listed = Counter(name.partition(".")[0] for name in EQUIVALENT)
    assert {file: int(n) for file, n in rows} == listed


# ---- judging


def small(system: str, block: str, only: str = "") -> dict[str, ProgramProfile]:
    """Profiles by which the smallest programs, or one, come to a block, and all properties hold in each."""
    ids = properties_of(system)

    def chosen(program: Program) -> bool:
        return program.id == only if only else program.traces < 40

    return {
        p.id: ProgramProfile(p.traces, True, 300, [block] if chosen(p) else [], list(ids))
        for p in PROGRAMS.values()
        if p.reference == system
    }


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
            "handover.Connection._schedule: compare-and-set-split: self._scheduled.compare_and_set(False, True)",
            "handover",
            "WK-6",
        ),
    ],
)
def test_a_mistake_of_order_is_caught_by_a_property(name: str, program: str, by: str) -> None:
    file = name.partition(".")[0]
    (mutant,) = [m for m in order_mutations(file) if m.name == name]
    lib = modules_with(file, mutant.source)
    kill = judge_by_programs("queue", lib, "b", small("queue", "b", program)).kill
    assert kill == Kill(by, program)


def test_the_right_reference_survives_and_what_it_never_comes_to_is_left_out() -> None:
    (mutant, *_) = order_mutations("fair")
    block = block_name("fair", mutant.path)
    right = modules_with("fair", ast.unparse(mutant.tree))
    verdict = judge_by_programs("fair", right, block, small("fair", block))
    assert verdict.kill is None
    assert not verdict.capped
    assert verdict.programs == sum(
        p.traces < 40 for p in PROGRAMS.values() if p.reference == "fair"
    )
    assert judge_by_programs("fair", right, "another", small("fair", block)).programs == 0


def test_a_program_that_has_more_schedules_is_capped_and_clears_nobody() -> None:
    (mutant, *_) = order_mutations("fair")
    right = modules_with("fair", ast.unparse(mutant.tree))
    verdict = judge_by_programs("fair", right, "b", small("fair", "b"), most=3)
    assert verdict.kill is None
    assert "fair-park" in verdict.capped


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("fair.FairConsumer._visit: read-before-the-loop: with self._lock:", "livelock"),
        (
            "fair.FairConsumer._take: moved-past-several: slot.waiting.popleft() to if not slot.waiting:",
            "raises IndexError",
        ),
        ("fair.FairConsumer._visit: lock-removed: with self._lock:", "data race"),
    ],
)
def test_what_fails_or_is_stuck_is_named(name: str, by: str) -> None:
    (mutant,) = [m for m in order_mutations("fair") if m.name == name]
    lib = modules_with("fair", mutant.source)
    program = "fair-park" if by == "data race" else "fair-rounds"
    kill = judge_by_programs("fair", lib, "b", small("fair", "b", program)).kill
    assert kill == Kill(by, program)


def test_a_log_that_was_cut_in_a_line_goes_on(tmp_path: Path) -> None:
    row = {"key": "k", "name": "n", "fate": "caught", "by": "ES-2 in two-takers", "seconds": 1}
    journal = tmp_path / "log.jsonl"
    journal.write_text(json.dumps(row) + '\n{"key": "half', "utf-8")
    assert read_journal(journal) == {"k": MutantOutcome("caught", "ES-2 in two-takers", 1)}
    with open_journal(journal) as out:
        out.write(json.dumps({**row, "key": "other"}) + "\n")
    assert list(read_journal(journal)) == ["k", "other"]


def test_the_tables_count_what_the_log_says() -> None:
    caught, survived, capped, late, *_ = order_mutations("handover")
    outcomes = {
        caught.key: MutantOutcome("caught", "WK-6 in handover", 1),
        survived.key: MutantOutcome("survived", "", 1),
        capped.key: MutantOutcome("inconclusive", "capped: handover", 1),
        late.key: MutantOutcome("out of time", "", 1),
    }
    text = order_run.tables([caught, survived, capped, late], outcomes, 9)
    assert "4 of 9 tried." in text
    assert "| handover | 4 | 1 | 0 | 1 | 1 | 1 | 25.0 % |" in text
    assert "| WK-6 | 1 |" in text
    assert "Open: 3" in text
    assert f"- `{capped.name}` (line {capped.line}): inconclusive, capped: handover" in text
