"""The page to step through a counterexample: what is embedded, and that it is what happened."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from seriatim_models.cli.report_builder import program_run, property_catalogue
from seriatim_models.explorer import Pct, World, explore
from seriatim_models.explorer.model.world import Record
from seriatim_models.explorer.trace.counterexample import Step
from seriatim_models.history.event import Event
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.check import check_program, runnable
from seriatim_models.properties.base import AnyProperty, Finding, Property
from seriatim_models.properties.whitebox.replay import Replay
from seriatim_models.report import Report
from seriatim_models.report.document import encode
from seriatim_models.report.html import html
from seriatim_models.report.reconstruct import (
    Reconstruction,
    Section,
    State,
    arguments,
    effects,
    states,
)
from seriatim_models.report.stepper import STEPS_MAX, happens_before, page, story
from seriatim_models.report.story import Story
from seriatim_models.report.templating import script_data
from seriatim_models.report.visible import visible

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\u2028&amp;\"'"


@dataclass(frozen=True)
class Case:
    """A counterexample made by hand."""

    events: list[Step]
    records: list[Record]
    program: str = "by-hand"
    violations: tuple[str, ...] = ("it broke",)
    end: str = "finished"
    threads: tuple[str, ...] = ("a", "b")
    period: int = 0
    replay: str = "seriatim check --replay TOKEN"


def step(n: int, thread: str, op: str, result: str = "", *records: Record) -> Step:
    return Step(n, thread, op, result, False, records)


@cache
def found(mutant: str) -> Story:
    run = program_run(check_program(PROGRAMS[MUTANTS[mutant].program], MUTANTS[mutant]), "dpor", [])
    assert run.story is not None
    return run.story


def described(sentence: str, source: str, kind: str) -> AnyProperty:
    """A property of which only the description is read."""
    attributes = {"sentence": sentence, "source": source, "kind": kind}
    made: AnyProperty = type("Described", (Property,), attributes)()
    return made


def table(state: State, title: str) -> Section:
    return next(section for section in state if section.title.startswith(title))


def embedded(source: str) -> dict[str, object]:
    (text,) = re.findall(r'<script type="application/json" class="story">(.*?)</script>', source)
    read = json.loads(text)
    assert isinstance(read, dict)
    return read


# ---- what is embedded


def test_what_is_embedded_can_be_read_and_has_a_state_for_every_step() -> None:
    shown = found("published-immediate")
    read = embedded(page(shown))
    steps, kept = read["steps"], read["states"]
    assert isinstance(steps, list)
    assert isinstance(kept, list)
    assert len(steps) == MUTANTS["published-immediate"].steps
    assert [s["n"] for s in steps] == list(range(1, len(steps) + 1))
    assert all(0 <= s["state"] < len(kept) for s in steps)


def test_the_race_turns_bad_where_what_was_delivered_is_dequeued() -> None:
    shown = found("published-immediate")
    assert (shown.good, shown.bad) == (8, 9)
    assert shown.steps[shown.bad - 1].op == "m1.state.set(DEQUEUED)"
    held, lost = (shown.states[shown.steps[n - 1].state] for n in (shown.good, shown.bad))
    assert table(held, "Entries of q").rows[1] == ("m1", "ACQUIRED", "A", "A at")
    assert table(lost, "Entries of q").rows[1] == ("m1", "DEQUEUED", "", "A at")
    assert [s.n for s in shown.steps if s.witness] == [8, 9]


def test_the_page_says_what_is_broken_and_how_to_see_it_again() -> None:
    source = page(found("published-immediate"), "seriatim show X")
    im1 = property_catalogue()["IM-1"]
    for text in (
        "IM-1",
        im1.sentence,
        im1.source,
        "m1 was delivered to A and dequeued",
        "seriatim show X",
    ):
        assert text in source


@pytest.mark.parametrize(
    "mutant",
    ["published-two-pointers", "level-off-by-one", "wants-without-credit", "tail-unlinked"],
)
def test_the_last_state_is_what_the_history_says(mutant: str) -> None:
    chosen = MUTANTS[mutant]
    result = check_program(PROGRAMS[chosen.program], chosen)
    case = result.explored.counterexample
    assert case is not None
    events = [
        Event(
            i=i,
            t=r.step,
            proc=r.thread,
            ev=r.ev,
            lvl="model",
            **{k: v for k, v in r.args.items() if k in ("ph", "q", "m", "prio", "key", "credit")},  # type: ignore[arg-type]
            args=dict(r.args),
        )
        for i, r in enumerate(case.records)
    ]
    replay = Replay(events)
    rows = {
        row[0].split(" ")[0]: row
        for section in states(case.events, case.records)[-1]
        if section.title.startswith("Entries of")
        for row in section.rows[1:]
    }
    for m, entry in replay.entries.items():
        if entry.links:
            state, holder = entry.state.last() or ("", "")
            assert rows[m][1].removesuffix(", unlinked") == state
            assert rows[m][2] == holder


@pytest.mark.parametrize("program", ["two-takers", "enqueue-consume", "priority-arrival", "close"])
def test_at_the_end_it_is_the_state_that_the_queue_itself_tells(program: str) -> None:
    checked = 0

    def compare(world: World) -> None:
        nonlocal checked
        now = Reconstruction()
        for record in world.records:
            now.record(record)
            if record.ev != "snapshot":
                continue
            shown: dict[str, object] = record.args
            q = str(shown["q"])
            assert [
                [e.m, list(e.place), *(e.state.last() or ())]
                for e in now.entries_of(q)
                if e.links and e.m not in now.links.unlinked and e.state.last() != ("DELETED", "")
            ] == shown["entries"]
            assert {
                c.name: {
                    "pointer": list(c.points),
                    "credit": c.credit_left,
                    "wants_work": c.wants.last(),
                }
                for c in now.queue.consumers.values()
                if not c.closed
            } == shown["consumers"]
            lists = shown["lists"]
            assert isinstance(lists, dict)
            for name, (members, size) in lists.items():
                if members or name in now.links.lists:
                    assert [now.links.lists[name].present, now.links.lists[name].size] == [
                        members,
                        size,
                    ]
            checked += 1

    # the end of an execution is the first time its snapshot is there, so its judge sees it
    explore(
        runnable(PROGRAMS[program], None),
        Pct(seed=1),
        name=program,
        max_executions=30,
        on_execution=compare,
    )
    assert checked >= 30


def test_what_is_gone_stays_to_be_seen_until_it_is_unlinked() -> None:
    gone = {"m": "m1", "ok": True, "sub": "", "how": "cas", "old": "DEQUEUED"}
    node: dict[str, object] = {"list": "q.All", "node": "A@q.All#1", "place": [0, 1]}
    records = [
        Record(0, "a", "queue", {"q": "q"}),
        Record(0, "a", "link", {"list": "q", "node": "m1", "place": [0, 1]}),
        Record(0, "a", "link", node),
        Record(1, "a", "entry_cas", {**gone, "new": "DELETED"}),
        Record(1, "a", "mark", node),
        Record(2, "a", "unlink", {"list": "q", "node": "m1", "place": [0, 1]}),
        Record(2, "a", "unlink", node),
    ]
    seen = states([step(1, "a", "x.get()"), step(2, "a", "x.get()")], records)
    assert [table(s, "Entries of q").rows[1][1] for s in seen] == [
        "AVAILABLE",
        "DELETED",
        "DELETED, unlinked",
    ]
    assert [table(s, "Lists of").rows[0][1] for s in seen] == ["A", "(A left)", ""]


# ---- what comes from outside


def hostile() -> Case:
    records = [
        Record(0, "a", "queue", {"q": HOSTILE}),
        Record(0, "a", "link", {"node": 7}),
        Record(1, HOSTILE, "enqueue", {"ph": "invoke", "q": HOSTILE, "m": HOSTILE}),
        Record(1, HOSTILE, HOSTILE, {HOSTILE: HOSTILE}),
    ]
    events = [step(1, HOSTILE, f"{HOSTILE}.set({HOSTILE})", HOSTILE, *records[2:])]
    return Case(events, records, HOSTILE, (HOSTILE,), HOSTILE, ("a", HOSTILE), 0, HOSTILE)


def test_no_name_becomes_markup() -> None:
    finding = Finding.of("SO-1", 1, [(HOSTILE, [])])
    source = page(
        story(hostile(), [finding], {"SO-1": described(HOSTILE, HOSTILE, "safety")}), HOSTILE
    )
    assert source.count("<script") == 2
    assert source.count("</script>") == 2
    assert "<img" not in source
    assert "<!--" not in source
    assert "\u2028" not in script_data(story(hostile()))
    steps = embedded(source)["steps"]
    assert isinstance(steps, list)
    assert steps[0]["result"] == visible(HOSTILE)


def test_the_script_never_makes_markup_of_text() -> None:
    source = page(story(hostile()))
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in source


def test_odd_records_of_another_program_do_no_harm() -> None:
    spoilt: list[dict[str, object]] = [
        {},
        {"node": None, "m": 3, "sub": "nobody", "ok": True, "list": 5, "at": ""},
    ]
    odd = [
        Record(1, "a", ev, args)
        for ev in (
            "link",
            "unlink",
            "entry_cas",
            "ptr_cas",
            "qcm_move",
            "consumer",
            "size",
            "close",
        )
        for args in spoilt
    ]
    shown = story(Case([step(1, "a", "x.get()", "5", *odd)], odd))
    assert table(shown.states[-1], "Shared objects").rows == (("x", "5"),)


def test_a_witness_of_another_execution_is_not_taken() -> None:
    case = Case([step(1, "a", "x.get()"), step(2, "b", "x.get()")], [])
    elsewhere = Finding.of("SO-1", 1, [("why", [Event(i=5, ev="deliver", t=1)])])
    shown = story(case, [elsewhere])
    assert (shown.good, shown.bad) == (1, 2)
    assert not any(s.witness for s in shown.steps)


def test_what_never_happens_is_bad_only_at_the_end() -> None:
    records = [Record(1, "a", "deliver", {})]
    case = Case([step(1, "a", "x.get()", "", *records), step(2, "b", "x.get()")], records)
    never = Finding.of("WK-5", 1, [("why", [Event(i=0, ev="deliver", t=1)])])
    assert story(case, [never], {"WK-5": described("", "", "safety")}).bad == 1
    assert story(case, [never], {"WK-5": described("", "", "liveness")}).bad == 2


# ---- programs that are not about the queue


@pytest.mark.parametrize(
    ("op", "result", "value"),
    [
        ("x.get()", "3", "3"),
        ("x.get()", "", "None"),
        ("x.set((1, 2))", "", "(1, 2)"),
        ("x.get_and_set(5)", "3", "5"),
        ("x.compare_and_set((1, 'a, b'), [3, 4])", "True", "[3, 4]"),
        ("x.compare_and_set(1, 2)", "False", None),
        ("x.get_and_add(2)", "40", "42"),
        ("x.add(-1)", "", "added -1"),
        ("x.acquire()", "", "acquired by a"),
        ("x.try_acquire()", "False", None),
        ("x.release()", "", "released by a"),
        ("choose(3)", "1", None),
        ("receive", "x = 7; y = 8", "7"),
    ],
)
def test_a_step_tells_the_value_of_its_object(op: str, result: str, value: str | None) -> None:
    assert dict(effects(step(1, "a", op, result))).get("x") == value


def test_a_counter_is_added_up() -> None:
    steps = [
        step(1, "a", "x.add(-1)"),
        step(2, "b", "x.add(3)"),
        step(3, "a", "x.get()", "7"),
        step(4, "b", "x.add(-2)"),
    ]
    values = [s[0].rows[0][1] for s in states(steps, [])[1:]]
    assert values == ["-1 since the beginning", "+2 since the beginning", "7", "5"]


def test_arguments_are_cut_outside_of_brackets_and_strings() -> None:
    assert arguments("") == []
    assert arguments("(1, 2), 'a\\', b', {3: 4, 5: 6}") == ["(1, 2)", "'a\\', b'", "{3: 4, 5: 6}"]


def test_arrows_join_what_cannot_be_swapped() -> None:
    made: Callable[..., Step] = step
    steps = [
        made(1, "a", "x.set(1)"),
        made(2, "b", "x.get()", "1"),
        made(3, "b", "x.get()", "1"),
        made(4, "a", "y.get()"),
        made(5, "b", "y.get()"),
        made(6, "a", "x.compare_and_set(1, 2)", "True"),
        made(7, "b", "x.compare_and_set(1, 2)", "False"),
        made(8, "b", "l.next.get()"),
        made(9, "a", "l.next.set(1)"),
    ]
    assert happens_before(steps) == [(1, 2), (3, 6), (6, 7)]


# ---- size


def test_a_hundred_steps_stay_small() -> None:
    shown = found("wants-without-credit")
    assert len(shown.steps) >= 50
    assert len(page(shown).encode()) < 400_000 * len(shown.steps) / 100


def test_a_page_of_too_many_steps_says_what_is_left_out() -> None:
    events = [step(n, "ab"[n % 2], f"x.set({n})") for n in range(1, STEPS_MAX + 11)]
    shown = story(Case(events, []))
    assert len(shown.steps) == STEPS_MAX
    assert "10 steps are not shown" in page(shown)


def test_a_circle_is_shown_once() -> None:
    events = [step(n, "ab"[n % 2], "x.get()") for n in range(1, 101)]
    shown = story(Case(events, [], period=4))
    assert len(shown.steps) < 16
    assert "the last 4 steps repeat" in shown.left_out


# ---- in the report


def test_the_report_holds_the_stepper_and_the_verdicts_do_not() -> None:
    chosen = MUTANTS["published-immediate"]
    run = program_run(check_program(PROGRAMS[chosen.program], chosen), "dpor", [])
    report = Report(command="seriatim check", started="", programs=[run])
    source = html(report)
    assert len(embedded(source)) > 5
    assert '"story"' not in encode(report).decode()
