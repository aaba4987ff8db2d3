"""Properties from outside: loading them, what a sequential model says, and both from the command line."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seriatim_models.history import Event
from seriatim_models.history.event import GAP
from seriatim_models.properties import own
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.own import PropertyError, load_properties, load_property
from seriatim_models.properties.sequential import ModelCall, SequentialModel, calls_of

SPEC = Path(__file__).parents[2] / "spec" / "own"


class Fifo(SequentialModel):
    """A queue: who gets takes what was put first."""

    id = "FIFO"
    sentence = "first in, first out"
    source = "a test"

    def initial(self) -> tuple[str, ...]:
        return ()

    def step(self, state: Any, call: ModelCall) -> tuple[str, ...] | None:
        if call.name == "publish":
            return (*state, call.m)
        if not call.m:
            return None if state else ()
        return state[1:] if state and state[0] == call.m else None


Made = tuple[str, str, int, int, str]


def history(made: list[Made]) -> list[Event]:
    """Calls (event, message, begin, end, phase of the end, "" for none) as events."""
    edges = []
    for k, (ev, m, begin, end, ph) in enumerate(made):
        edges.append((begin, 0, k, "invoke", ev, m if ev == "publish" else ""))
        if ph:
            edges.append((end, 1, k, ph, ev, m if ph == "ok" else ""))
    return [
        Event(i=i, t=t, ev=ev, ph=ph, m=m, op=k, q="q", clk="c")
        for i, (t, _, k, ph, ev, m) in enumerate(sorted(edges))
    ]


def judged(*made: Made) -> Finding:
    return Fifo().check(history(list(made)))


PUT_A: Made = ("publish", "a", 0, 1, "ok")
PUT_B: Made = ("publish", "b", 2, 3, "ok")


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        ([PUT_A, PUT_B], Verdict.INCONCLUSIVE),
        ([PUT_A, PUT_B, ("get", "a", 4, 5, "ok")], Verdict.OK),
        ([PUT_A, PUT_B, ("get", "b", 4, 5, "ok")], Verdict.VIOLATED),
        ([PUT_A, ("publish", "b", 0, 3, "ok"), ("get", "b", 4, 5, "ok")], Verdict.OK),
        ([PUT_A, PUT_B, ("get", "b", 4, 5, "ok"), ("get", "a", 4, 6, "ok")], Verdict.OK),
        ([PUT_A, ("get", "", 4, 5, "ok")], Verdict.VIOLATED),
        ([("publish", "a", 0, 9, "ok"), ("get", "", 4, 5, "ok")], Verdict.OK),
        # an unknown outcome may have happened, at any time later, or not
        ([("publish", "a", 0, 1, "info"), ("get", "", 4, 5, "ok"), ("get", "a", 6, 7, "ok")], Verdict.OK),
        ([("publish", "a", 0, 1, ""), ("get", "", 4, 5, "ok")], Verdict.OK),
        ([PUT_A, PUT_B, ("get", "", 4, 5, "info"), ("get", "b", 6, 7, "ok")], Verdict.OK),
        ([PUT_A, PUT_B, ("get", "", 8, 9, "info"), ("get", "b", 6, 7, "ok")], Verdict.VIOLATED),
        # what failed did not happen
        ([PUT_A, ("publish", "b", 0, 1, "fail"), ("get", "b", 4, 5, "ok")], Verdict.VIOLATED),
        ([PUT_A, PUT_B, ("get", "", 4, 5, "fail"), ("get", "b", 6, 7, "ok")], Verdict.VIOLATED),
    ],
)  # fmt: skip
def test_a_sequential_queue(made: list[Made], verdict: Verdict) -> None:
    assert judged(*made).verdict is verdict


def test_a_witness_violates_by_itself_and_is_a_beginning() -> None:
    made: list[Made] = [
        PUT_A, PUT_B, ("get", "b", 4, 5, "ok"), ("publish", "c", 6, 7, "ok"), ("get", "a", 8, 9, "ok"),
    ]  # fmt: skip
    found = judged(*made)
    assert "the last is get b by ?, at event 5" in found.explanation
    assert [e.i for e in found.witness] == [0, 1, 2, 3, 4, 5]
    assert Fifo().check(found.witness).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(("lvl", "verdict"), [("broker", Verdict.VIOLATED), ("api", Verdict.OK)])
def test_a_publish_that_nobody_confirmed_is_there_when_the_broker_says_so(
    lvl: str, verdict: Verdict
) -> None:
    sent = Event(i=0, t=0, ev="publish", m="a", q="q", lvl=lvl)
    found = [Event(i=i, t=i, ev="get", ph=ph, q="q", op=1) for i, ph in ((1, "invoke"), (2, "ok"))]
    assert Fifo().check([sent, *found]).verdict is verdict


def test_queues_are_parts_and_a_model_may_say_otherwise() -> None:
    class OneForAll(Fifo):
        def part(self, event: Event) -> str:
            return ""

    events = [
        Event(i=0, t=0, ev="publish", ph="ok", m="a", q="q1"),
        Event(i=1, t=1, ev="get", ph="ok", q="q2"),
    ]
    assert Fifo().check(events).verdict is Verdict.OK
    assert OneForAll().check(events).verdict is Verdict.OK  # nobody saw the publish begin
    begun = [Event(i=0, t=0, ev="publish", ph="invoke", m="a", q="q1", op=1), *(
        Event(i=e.i + 1, t=2 + e.i, ev=e.ev, ph=e.ph, m=e.m, q=e.q, op=1 if not e.i else None) for e in events
    )]  # fmt: skip
    late = Event(i=2, t=4, ev="get", ph="invoke", q="q2", op=2)
    end = Event(i=3, t=5, ev="get", ph="ok", q="q2", op=2)
    assert OneForAll().check([*begun[:2], late, end]).verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        (Event(i=99, ev=GAP), "lines of the recording were lost"),
        (Event(i=99, t=9, ev="publish", ph="invoke", clk="other"), "several clocks"),
    ],
)
def test_what_cannot_be_compared_is_untestable_and_says_why(extra: Event, why: str) -> None:
    events = history([PUT_A, PUT_B, ("get", "b", 4, 5, "ok")])
    found = Fifo().check([*events, extra])
    assert (found.verdict, found.n_untestable) == (Verdict.INCONCLUSIVE, 1)
    assert why in found.explanation


def test_a_search_that_takes_too_long_is_given_up() -> None:
    class Hasty(Fifo):
        most = 10

    made: list[Made] = [("publish", f"m{k}", 0, 100, "ok") for k in range(12)]
    found = Hasty().check(history([*made, ("get", "m99", 101, 102, "ok")]))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "in 10 states" in found.explanation


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["publish", "get"]), st.sampled_from(["a", "b", ""]),
        st.integers(0, 8), st.integers(0, 8), st.sampled_from(["ok", "ok", "ok", "info", ""]),
    ),
    max_size=5,
)  # fmt: skip


@given(CALLS)
def test_the_search_agrees_with_all_orders(drawn: list[Made]) -> None:
    made = [
        (ev, (m or "a") if ev == "publish" else m, min(s, t), max(s, t) + 1, ph)
        for ev, m, s, t, ph in drawn
    ]
    model, calls = Fifo(), calls_of(history(made))
    sent = {c.m for c in calls if c.name == "publish"}

    def explained() -> bool:
        known = [c for c in calls if c.known]
        open_ = [c for c in calls if not c.known]
        for n in range(len(open_) + 1):
            for chosen in itertools.combinations(open_, n):
                for order in itertools.permutations([*known, *chosen]):
                    late = [
                        a
                        for k, a in enumerate(order)
                        if any(b.end < a.begin for b in order[k + 1 :])
                    ]
                    if not late and runs(order, model.initial()):
                        return True
        return False

    def runs(order: tuple[ModelCall, ...], state: Any) -> bool:
        if not order:
            return True
        first, rest = order[0], order[1:]
        takes = first.name != "publish" and not first.known
        after = [model.step(state, first._replace(m=m)) for m in (sent if takes else {first.m})]
        return any(s is not None and runs(rest, s) for s in after)

    assert model.explains(calls) is explained()


# loading


def test_a_module_a_file_and_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_property(f"{SPEC / 'stack.py'}:Stack").id == "STACK"
    assert load_property("seriatim_models.properties.blackbox.confirms:AnsweredOnce").id == "P21"

    class Point:
        name, value = "refunds", "shop:Rule"

        def load(self) -> type[Fifo]:
            return Fifo

    monkeypatch.setattr(own, "entry_points", lambda group: [Point()])
    assert load_property("refunds").id == "FIFO"
    with pytest.raises(PropertyError, match=r"refund: no installed package .*did you mean refunds"):
        load_property("refund")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("Rule = 7", "this int is no Property"),
        ("class Rule: pass", "the class Rule is no Property"),
        ("def Rule(:", "line 1: "),
        ("import nothing_of_that_name", "line 1: ModuleNotFoundError"),
        ("1 / 0", "line 1: ZeroDivisionError"),
        (
            "from seriatim_models.properties.sequential import SequentialModel\n"
            "class Rule(SequentialModel):\n    id = sentence = source = 'x'\n    def initial(self): return ()",
            "Rule: has no method step",
        ),
        (
            "from seriatim_models.properties.base import WholeHistory\n"
            "class Rule(WholeHistory):\n    def __init__(self, x): pass",
            "cannot be made without arguments",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_file(source: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text(source)
    with pytest.raises(PropertyError, match=f"rules.py.*{why}"):
        load_property(f"{path}:Rule")


def test_an_id_stands_once() -> None:
    with pytest.raises(PropertyError, match="the id 'FIFO' is that of a property of the profile"):
        load_properties((f"{__name__}:Fifo",), (Fifo(),))
