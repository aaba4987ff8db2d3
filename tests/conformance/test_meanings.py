"""What an implementation declares that its words mean: it is held to that, and to nothing stricter."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from seriatim_models.cli import run
from seriatim_models.conformance.driving import drive
from seriatim_models.conformance.judging import default_profile
from seriatim_models.conformance.local import Local
from seriatim_models.conformance.meanings import DECLARED
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.conformance.search import SearchBounds, SearchOutcome, search
from seriatim_models.conformance.selftest import self_test
from seriatim_models.properties.base import Verdict

BOUNDS = SearchBounds(seconds=60.0, scripts=150, steps=30)


class Put:
    """A queue that is polled; `to` is where it really puts what is requeued, `means` what it declares."""

    means: ClassVar[dict[str, Any]] = {}
    to = "place"
    twice = False
    stack = False

    def __init__(self) -> None:
        self.items: list[tuple[int, str, bool]] = []
        self.held: dict[tuple[int, int], tuple[int, str, bool]] = {}
        self.n = 0
        self.tags: Counter[int] = Counter()

    def publish(self, q: str, m: str, key: str = "") -> None:
        self.n += 1
        self.items.append((self.n, m, False))

    def get(self, ch: int, q: str) -> tuple[str, int, bool] | None:
        if not self.items:
            return None
        self.tags[ch] += 1
        item = self.held[ch, self.tags[ch]] = self.items.pop(-1 if self.stack else 0)
        return item[1], self.tags[ch], item[2]

    def ack(self, ch: int, dtag: int) -> None:
        item = self.held.pop((ch, dtag))
        if self.twice and item[0] % 3 == 0:
            self.twice = False
            self.items.append((item[0], item[1], True))

    def nack(self, ch: int, dtag: int) -> None:
        place, m, _ = self.held.pop((ch, dtag))
        self.n += 1
        ends = {"place": place, "head": -self.n, "tail": self.n}
        self.items.append((ends[self.to], m, True))
        self.items.sort()

    def close(self, ch: int) -> None:
        for by, dtag in [k for k in self.held if k[0] == ch]:
            self.nack(by, dtag)
        del self.tags[ch]


def queue(to: str = "place", **means: Any) -> type[Put]:
    return type("Queue", (Put,), {"to": to, "means": means})


def searched(made: type[Put]) -> SearchOutcome:
    system = Local(made)
    return search(system, default_profile(system), BOUNDS, seed=1)


def violated(made: type[Put]) -> set[str]:
    return {w.property for w in searched(made).witnesses}


@pytest.mark.parametrize("to", ["place", "head", "tail"])
def test_who_requeues_where_it_declares_is_right(to: str) -> None:
    outcome = searched(queue(to, requeue=to))
    assert not outcome.witnesses
    assert outcome.profile == DECLARED
    verdicts = {f.property: f.verdict for f in outcome.findings}
    assert verdicts.get("P25", Verdict.INCONCLUSIVE) is (
        Verdict.INCONCLUSIVE if to == "place" else Verdict.OK
    )
    assert ("P6" in verdicts) == (to == "place")


@pytest.mark.parametrize(
    ("to", "declares", "by"),
    [
        ("place", "tail", "P25"),
        ("head", "tail", "P25"),
        ("place", "head", "P25"),
        ("tail", "head", "P25"),
        ("tail", "place", "P5"),
        ("head", "place", "P5"),
    ],
)
def test_who_requeues_elsewhere_is_reported_in_few_commands(
    to: str, declares: str, by: str
) -> None:
    outcome = searched(queue(to, requeue=declares))
    assert by in {w.property for w in outcome.witnesses}
    witness = next(w for w in outcome.witnesses if w.property == by)
    assert witness.again == witness.runs
    assert len(witness.run.steps) <= 7


def test_anywhere_allows_each_end() -> None:
    for to in ("place", "head", "tail"):
        assert not violated(queue(to, requeue="anywhere"))


def test_a_stack_is_right_only_if_it_declares_no_order() -> None:
    stack = {"stack": True}
    assert not violated(type("S", (Put,), stack | {"means": {"order": "none"}}))
    assert {"P4", "P5"} & violated(type("S", (Put,), stack | {"means": {"requeue": "place"}}))


def test_what_comes_again_after_its_ack_is_declared() -> None:
    again = {"twice": True}
    assert "P1" in violated(type("T", (Put,), again | {"means": {"guarantee": "exactly-once"}}))
    means = {"guarantee": "at-least-once", "order": "none"}
    assert not violated(type("T", (Put,), again | {"means": means}))


class GroupedPut(Put):
    """One that keeps order within groups alone: the last group first."""

    can: ClassVar[tuple[str, ...]] = ("publish", "get", "ack", "close", "groups")
    means: ClassVar[dict[str, Any]] = {"order": "group"}

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, str] = {}

    def publish(self, q: str, m: str, key: str = "") -> None:
        super().publish(q, m)
        self.keys[m] = key
        assert key

    def get(self, ch: int, q: str) -> tuple[str, int, bool] | None:
        self.items.sort(key=lambda item: (-int(self.keys[item[1]][1:]), item[0]))
        return super().get(ch, q)


def test_order_within_groups_is_no_order_of_the_queue() -> None:
    assert not violated(GroupedPut)
    anyhow = type("G", (GroupedPut,), {"means": {"guarantee": "exactly-once"}})
    with pytest.raises(
        AssertionError
    ):  # a message without a group comes only where that is no promise
        anyhow().publish("q", "m0")
    backwards = type("B", (GroupedPut,), {"stack": True})
    assert {"P4", "P5"} & violated(backwards)


class Read:
    """A log whose groups commit the position that was the last, or the next."""

    means: ClassVar[dict[str, Any]] = {"committed": "last"}
    begins = 1
    """What is added to a committed position to go on."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.at: dict[tuple[int, str], int] = {}
        self.committed: dict[str, int] = {}

    def publish(self, q: str, m: str) -> int:
        self.log.append(m)
        return len(self.log) - 1

    def read(self, ch: int, q: str, ctag: str) -> tuple[str, int] | None:
        begin = self.committed[ctag] + self.begins if ctag in self.committed else 0
        at = self.at.setdefault((ch, ctag), begin)
        if at >= len(self.log):
            return None
        self.at[ch, ctag] = at + 1
        return self.log[at], at

    def commit(self, ch: int, q: str, ctag: str, pos: int) -> None:
        assert pos >= 0
        self.committed[ctag] = max(pos, self.committed.get(ctag, -1))

    def close(self, ch: int) -> None:
        self.at = {k: at for k, at in self.at.items() if k[0] != ch}


def test_a_committed_position_is_what_it_is_declared_to_be() -> None:
    for begins, means, right in (
        (1, "last", True),
        (0, "next", True),
        (0, "last", False),
        (1, "next", False),
    ):
        made = type("L", (Read,), {"means": {"committed": means}, "begins": begins})
        system = Local(made)
        outcome = search(system, default_profile(system), BOUNDS, seed=1)
        assert {w.property for w in outcome.witnesses} == (set() if right else {"P15"})
        wrong = [c.sentence for c in self_test(Local(made)) if c.why and not c.skipped]
        assert wrong == ([] if right else ["a group goes on behind what it committed"])


def test_the_self_test_covers_what_is_declared() -> None:
    sentence = "what is requeued goes where it declares"
    for to in ("place", "head", "tail"):
        for declares in ("place", "head", "tail", "anywhere"):
            checks = {c.sentence: c.why for c in self_test(Local(queue(to, requeue=declares)))}
            assert (sentence in checks) == (declares != "anywhere")
            assert bool(checks.get(sentence)) == (declares not in (to, "anywhere"))
    assert sentence not in {c.sentence for c in self_test(Local(queue()))}


@pytest.mark.parametrize(
    ("means", "why"),
    [
        ({"requeu": "tail"}, "means: 'requeu' is none of order, requeue, guarantee, committed"),
        ({"requeue": "end"}, "means: requeue: 'end' is none of place, head, tail, anywhere"),
        ({"order": 3}, "means: order: 3 is none of queue"),
        ({"order": "group"}, "means: order: group says nothing without groups in can"),
        ({"committed": "next"}, "means: committed: next says nothing without commit in can"),
        (["requeue"], "is not a table of names and values"),
    ],
)
def test_a_meaning_that_is_none_is_refused(means: Any, why: str) -> None:
    made = type("Q", (Put,), {"means": means, "can": ("publish", "get", "ack", "nack")})
    with pytest.raises(Fault, match=why):
        Local(made)


def test_the_history_says_what_was_declared() -> None:
    """So a recording is judged by it, too."""
    run = drive(Local(queue("tail", requeue="tail")), [ScriptStep(op="publish", q="q")])
    [declared] = [e for e in run.events if e.ev == "declare"]
    assert declared.args == {"requeue": "tail"}


def test_a_program_declares_in_its_hello(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The example requeues to its place and is held to what it says; what shows that it does not is replayed."""
    text = Path("spec/conform/example.py").read_text()
    says = '"can": CAN}'
    assert says in text
    for means, code in (("place", 0), ("tail", 1), ("end", 2)):
        path = tmp_path / f"{means}.py"
        path.write_text(text.replace(says, f'"can": CAN, "means": {{"requeue": "{means}"}}}}'))
        out = tmp_path / "verdicts.json"
        command = ["conform", "--exec", f"{sys.executable} {path}", "--out", str(tmp_path)]
        bounds = ["--scripts", "60", "--seed", "1", "--json", str(out)]
        assert run([*command, *bounds]) == code
        if code == 2:
            assert "means: requeue: 'end' is none of" in capfd.readouterr().err
            continue
        assert json.loads(out.read_text())["audits"][0]["profile"] == DECLARED
        if code == 1:
            assert run([*command, "--replay", str(tmp_path / "P25.json")]) == 1


class Consumed:
    """A queue that pushes to one consumer a channel; `really` is what its cancel does, `means` what it declares."""

    can = ("publish", "get", "consume", "cancel", "ack", "nack", "close", "redelivered")
    means: ClassVar[dict[str, Any]] = {}
    really = "returns"

    def __init__(self) -> None:
        self.items: list[tuple[int, str, bool]] = []
        self.held: dict[tuple[int, int], tuple[str, tuple[int, str, bool]]] = {}
        self.consumers: dict[tuple[int, str], Callable[..., None]] = {}
        self.tags: Counter[int] = Counter()
        self.n = 0

    def _given(self, ch: int, ctag: str) -> tuple[str, int, bool]:
        self.tags[ch] += 1
        item = self.items.pop(0)
        self.held[ch, self.tags[ch]] = ctag, item
        return item[1], self.tags[ch], item[2]

    def _push(self) -> None:
        while self.items and self.consumers:
            (ch, ctag), deliver = next(iter(self.consumers.items()))
            deliver(*self._given(ch, ctag))

    def _back(self, keys: list[tuple[int, int]]) -> None:
        for key in keys:
            place, m, _ = self.held.pop(key)[1]
            self.items.append((place, m, True))
        self.items.sort()
        self._push()

    def publish(self, q: str, m: str) -> None:
        self.n += 1
        self.items.append((self.n, m, False))
        self._push()

    def get(self, ch: int, q: str) -> tuple[str, int, bool] | None:
        return self._given(ch, "") if self.items else None

    def consume(self, ch: int, q: str, ctag: str, deliver: Callable[..., None]) -> None:
        self.consumers[ch, ctag] = deliver
        self._push()

    def cancel(self, ch: int, ctag: str) -> None:
        del self.consumers[ch, ctag]
        if self.really == "returns":
            self._back([k for k, (by, _) in self.held.items() if (k[0], by) == (ch, ctag)])

    def ack(self, ch: int, dtag: int) -> None:
        del self.held[ch, dtag]

    def nack(self, ch: int, dtag: int) -> None:
        self._back([(ch, dtag)])

    def close(self, ch: int) -> None:
        self.consumers = {k: d for k, d in self.consumers.items() if k[0] != ch}
        self._back([k for k in self.held if k[0] == ch])
        del self.tags[ch]


def consumed(really: str, **means: Any) -> type[Consumed]:
    return type("Queue", (Consumed,), {"really": really, "means": means})


@pytest.mark.parametrize("really", ["keeps", "returns"])
@pytest.mark.parametrize("declares", ["keeps", "returns", None])
def test_a_cancel_does_what_it_declares(really: str, declares: str | None) -> None:
    means = {} if declares is None else {"cancel": declares}
    made: Any = consumed(really, **means)
    failing = {
        check.sentence for check in self_test(Local(made)) if check.why and not check.skipped
    }
    right = really == (declares or "keeps")
    assert failing == (
        set()
        if right or declares is None
        else {"a cancel does with what its consumer holds what is declared"}
    )
    outcome = search(Local(made), default_profile(Local(made)), BOUNDS, seed=1)
    assert bool(outcome.witnesses) == (not right)
    assert all(len(w.run.steps) <= 6 for w in outcome.witnesses)


@pytest.mark.parametrize("exact", [True, False])
def test_what_a_cancel_returns_is_recorded_as_given_back(exact: bool) -> None:
    made: Any = consumed("returns", cancel="returns")
    steps = [
        ScriptStep(op="consume", ctag="c1"),
        ScriptStep(op="publish"),
        ScriptStep(op="consume", ch=2, ctag="c2"),
        ScriptStep(op="cancel", ctag="c1"),
    ]
    steps = [msgspec.structs.replace(step, wait=exact) for step in steps]
    events = drive(Local(made), steps).events
    at = [(e.ev, e.ch) for e in events if e.ev in ("nack", "deliver")]
    assert at[:3] == [("deliver", 1), ("nack", 1), ("deliver", 2)]
