"""Executions of the reference are behaviours of the specifications; mutants leave them where they go wrong."""

from types import ModuleType

import pytest

import seriatim.queue as reference
from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.programs.base import Mutant, Programs
from seriatim_models.programs.mutant_modules import load as load_module
from seriatim_models.programs.queue import drain_behind, drain_if_woken
from seriatim_models.programs.scene import PullScene, PushScene
from seriatim_workshop.formal import SPEC, followed, simulation, traces
from seriatim_workshop.formal.concrete import Concrete, NotThat
from seriatim_workshop.formal.followed import share
from seriatim_workshop.formal.recorder import HostOperation
from seriatim_workshop.formal.simulation import Simulation
from seriatim_workshop.formal.theory import load
from seriatim_workshop.formal.traces import follow


@pytest.mark.parametrize(
    ("program", "executions"),
    [
        ("immediate-returned", 9),
        ("release-again", 20),
        ("enqueue-rest", 17),
        ("subscribe-release", 40),  # rewinds a consumer that came too late to be owed one
        ("close", 28),  # locks a consumer that has left
        ("group-left-twice", 10),
        ("browse-taken", 16),
        ("expiring", 15),
        ("handover-suspend", 40),  # two queues, and threads that serve both
    ],
)
def test_executions_of_the_reference_are_accepted(program: str, executions: int) -> None:
    found = follow(program, executions=executions)
    assert found.wrong == ""
    assert found.executions == executions
    assert found.steps > 100


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_program_of_the_queue_is_followed_and_most_writes_are_steps() -> None:
    outcomes = [follow(program, executions=4) for program in traces.programs()]
    assert [o.wrong for o in outcomes if o.wrong] == []
    assert share(outcomes) >= 0.9977  # measured 0.9978; it may only rise
    outside = {kind for o in outcomes for what, _, kind in o.counts if what == "outside"}
    assert outside == {"answer", "answer drawn"}
    known = {kind for o in outcomes for what, _, kind in o.counts if what == "stutter"}
    assert known == {"wake", "wake drawn"}  # of browsers, which oblige nobody
    assert {note for o in outcomes for note in o.notes} == set()


def test_states_pointers_lists_and_depth_are_steps_without_exception() -> None:
    found = follow("interest", executions=40)
    found.counts.update(follow("group-freed").counts)
    found.counts.update(follow("browse-taken").counts)
    found.counts.update(follow("push").counts)
    found.counts.update(follow("handover", executions=20).counts)
    for what, _, kind in found.counts:
        assert what == "step" or (what == "stutter" and kind in ("wake", "wake drawn"))


@pytest.mark.parametrize(
    ("mutant", "system", "where"),
    [
        ("published-immediate", "entries", "m1.state.set(DEQUEUED)"),
        (
            "published-immediate-repair",
            "entries",
            "status(m1) is RETURNED in the specification, and AVAILABLE",
        ),
        (
            "published-rewind",
            "entries",
            "it must not be that A owes A a rewind for m1",
        ),
        ("release-without-owner", "entries", "release(t = B, e = m1, c = B) is not possible"),
        (
            "left-in-the-old-list",
            "lists",
            "A comes into q.Interested.0, and moves to NOT_INTERESTED",
        ),
        ("tail-unlinked", "nodes", "unlink"),
        ("looks-then-joins", "consumers", "be_the_only_one"),
        ("credit-taken-twice", "consumers", "credit"),
        ("credit-not-restored", "consumers", "return_from_attempt"),
        ("sent-after-the-lock", "consumers", "has the send lock of A"),
        (
            "group-leaked",
            "entries",
            "settle(t = A) is not possible here: it must not be that A has g1 counted in its group",
        ),
        ("close-keeps-messages", "entries", "let_go"),
        (
            "nobody-else-is-told",
            "wakeups",
            "here: it must not be that A has still to wake another than A",
        ),
        ("registers-without-a-look", "wakeups", "ends its walk, and has not looked for"),
        ("published-look-then-rest", "wakeups", ""),
        ("wake-the-herd", "wakeups", "notify"),
        (
            "walk-ends-with-its-message",
            "wakeups",
            "Q has still to wake high, whom it left a message to",
        ),
        (
            "left-and-nobody-woken",
            "wakeups",
            "low has still to wake high, whom it left a message to",
        ),
        (
            "left-by-a-walk",
            "wakeups",
            "P has still to wake high, whom it left a message to",
        ),
        ("wanted-before-it-came", "lists", "flag(low) is False in the specification"),
        ("published-wish-told-first", "lists", "sets the flag of high, and has not its lock"),
        ("wants-without-credit", "consumers", "high has taken the last credit of high"),
        ("granted-in-silence", "consumers", "B has still to see to it that B wants messages"),
        ("pause-is-not-heard", "consumers", "A has still to see to it that A wants none"),
        ("no-job", "jobs", "P owes m1 a job"),
        ("job-clears-flag-last", "jobs", "could go to A all the while"),
        ("credit-without-a-job", "jobs", "has still to see to a job, since m1 could go to A"),
        ("job-for-what-is-gone", "jobs", "P has seen what it enqueued available since its last"),
        ("refusal-ends-the-call", "entries", "let_go(c = A) is not possible here"),
        ("connection-looks-then-clears", "handover", "undone (to_check)"),
        ("session-done-with-one-target", "handover", "end_run"),
        ("target-not-put-back", "wakeups", "nobody pulls again"),
        ("suspended-with-its-target", "wakeups", "nobody pulls again"),
    ],
)
def test_a_mutant_is_rejected_at_the_step_where_it_goes_wrong(
    mutant: str, system: str, where: str
) -> None:
    found = follow(MUTANTS[mutant].program, mutant)
    assert found.system == system
    assert where in found.rejected
    assert found.wrong == ""


RANKS = Programs("queue")


@RANKS.scenarios(PullScene)("WK-1", traces=0)
def three_priorities(scene: PullScene) -> None:
    """The lowest of three, woken for another message, comes to one that the two above it both want.

    Bounds: Three priorities; only the lowest selects the second message. Who is woken looks when all is over.
    """
    low = scene.subscribe("low")
    middle = scene.subscribe("middle", priority=1, keys=frozenset({"a"}))
    high = scene.subscribe("high", priority=2, keys=frozenset({"a"}))
    scene.enqueue("m1", key="a")
    scene.enqueue("m2", key="b")
    threads = (
        scene.spawn(lambda: drain_if_woken(scene, low), name="low"),
        scene.spawn(lambda: drain_if_woken(scene, high), name="high"),
        scene.spawn(lambda: scene.queue.set_notify_work_desired(high, False), name="pause"),
    )
    drain_behind(scene, threads, (middle, low, high))


def test_a_message_is_left_to_the_highest_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the call matrix and the programs with two priorities are followed otherwise."""
    monkeypatch.setitem(PROGRAMS, "three-priorities", RANKS["three-priorities"])
    found = follow("three-priorities", executions=60)
    assert found.wrong == ""
    assert ("wakeups", "leave_it_rather_to") in found.actions


@RANKS.scenarios(PullScene)("WK-11", traces=0)
def browser_resumes_beside_another(scene: PullScene) -> None:
    """A browser that paused resumes; there is a message that neither it nor another has been shown.

    Bounds: Sequential; two browsers, one message.
    """
    browser = scene.subscribe("X", acquires=False)
    scene.subscribe("Y", acquires=False)
    scene.enqueue("m1")

    def pause_and_resume() -> None:
        scene.queue.set_notify_work_desired(browser, False)
        scene.queue.set_notify_work_desired(browser, True)

    scene.spawn(pause_and_resume, name="X")


def edited_queue(edit: tuple[str, str]) -> ModuleType:
    """The queue with one text in the place of another."""
    return load_module("queue", Mutant("edited", "", "", "queue", (edit,), "", "", 0))


def test_who_resumes_a_browser_wakes_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """In no program of the queue another browser listens meanwhile, with something to see."""
    monkeypatch.setitem(PROGRAMS, "browser-resumes", RANKS["browser-resumes-beside-another"])
    assert follow("browser-resumes").wrong == ""
    edit = (
        "            if desired:\n                self._notify(consumer)\n            elif",
        "            if desired:\n"
        "                for other in self.manager.lists[NON_ACQUIRING].consumers():\n"
        "                    self._notify(other)\n"
        "                self._notify(consumer)\n"
        "            elif",
    )
    found = follow("browser-resumes", lib=edited_queue(edit))
    assert found.system == "wakeups"
    assert "wake_browser(t = X, b = Y) is not possible here" in found.rejected


@RANKS.scenarios(PullScene)("WK-11", traces=0)
def refused_beside_arrival(scene: PullScene) -> None:
    """A consumer releases what another holds, which is refused, while a message arrives for it.

    Bounds: One message held, one that arrives; who waits takes nothing.
    """
    a = scene.taker("A")
    scene.enqueue("m1")
    held = scene.take(a)
    b = scene.subscribe("B")
    scene.spawn(lambda: scene.queue.release(held, b), name="B")
    scene.publish("m2")


def test_a_release_that_is_refused_wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """In no program of the queue a release is refused while somebody waits, and something is there to be woken for."""
    monkeypatch.setitem(PROGRAMS, "refused", RANKS["refused-beside-arrival"])
    assert follow("refused").wrong == ""
    edit = (
        "                self._announce_group(entry.message.group)\n"
        "            else:\n"
        "                self._announce(entry)\n"
        "        return ok\n",
        "                self._announce_group(entry.message.group)\n"
        "            else:\n"
        "                self._announce(entry)\n"
        "        else:\n"
        "            self._announce(entry)\n"
        "        return ok\n",
    )
    found = follow("refused", lib=edited_queue(edit))
    assert found.system == "wakeups"
    assert "notify(t = B, c = B) is not possible here: it needs that B walks" in found.rejected


@RANKS.scenarios(PushScene)("WK-1", traces=0)
def due_for_two(scene: PushScene) -> None:
    """Two messages come to be due in one pass, one for each of two consumers, and one job may send both.

    Bounds: Two consumers, which select one message each; one pass of housekeeping.
    """
    scene.clock_starts()
    for name in ("A", "B"):
        scene.subscribe(name, keys=frozenset({name}))
    for name in ("A", "B"):
        scene.enqueue(f"m-{name}", key=name, not_before=5)
    scene.housekeeping(after=5)


def test_a_job_goes_on_behind_who_was_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """In no program of the queue one job has something for two consumers that do not select the same."""
    monkeypatch.setitem(PROGRAMS, "due-for-two", RANKS["due-for-two"])
    assert follow("due-for-two", executions=20).wrong == ""
    edit = (
        '            while self.deliver_to(consumer, "job"):\n                pass\n',
        '            if self.deliver_to(consumer, "job"):\n'
        '                while self.deliver_to(consumer, "job"):\n                    pass\n'
        "                return\n",
    )
    found = follow("due-for-two", executions=60, lib=edited_queue(edit))
    assert found.system == "jobs"
    assert "ends its job, and m-B could go to B all the while" in found.rejected


def test_a_rejection_names_the_one_thing_that_fails_and_to_whom() -> None:
    system = load("wakeups")
    members = {"Message": ["m1"], "Consumer": ["A", "B"], "Thread": ["P"], "Browser": []}
    state = Concrete(system, members)
    state.put("owing", "P", "B", True)
    with pytest.raises(NotThat) as failure:
        state.take("settle", t="P")
    assert str(failure.value) == (
        "settle(t = P) is not possible here: it must not be that P has still to wake another than B"
    )


def test_the_page_has_every_program_every_mutant_and_every_claim() -> None:
    page = (SPEC / "FOLLOWED.md").read_text("utf-8")
    rows = {line.split("|")[1].strip(" `") for line in page.splitlines() if line.startswith("| ")}
    assert {*traces.programs(), *traces.mutants()} <= rows
    assert "\n".join(followed.proved()) in page
    assert set(followed.ACCEPTED) <= set(traces.mutants())


def test_a_write_that_no_system_knows_is_rejected() -> None:
    simulation = Simulation(reference)
    simulation(HostOperation(1, "A", "set", "q.novelty", None, None, 1))
    assert "no system has a step for this write" in simulation.rejected


def test_a_concrete_state_and_the_solver_agree_on_an_action() -> None:
    state = Concrete(
        load("entries"),
        {"Entry": ["m"], "Consumer": ["A", "B"], "Thread": ["t"], "Mark": ["k", "l"], "Group": []},
    )
    for name in ("A", "B"):
        state.put("acquires", name, True)
        state.put("wants", name, "m", True)
    state.take("count", e="m")
    state.take("append", t="t", e="m", p=1)
    state.take("register", c="A", k="k")
    state.take("look", t="t", c="A")
    state.take("go_on", t="t", n="m")
    state.take("advance", t="t", k="l")
    state.take("look", t="t", c="A")
    state.take("find", t="t", e="m")
    state.take("acquire", t="t", e="m", c="A")
    assert state.broken() == []
    with pytest.raises(NotThat, match=r"acquire\(t = t, e = m, c = B\) is not possible here"):
        state.take("acquire", t="t", e="m", c="B")
    state.put("owner", "m", "B")
    assert "who_holds" in state.broken()


@pytest.mark.parametrize(
    ("program", "mutant"),
    [
        ("pause-and-take", ""),
        ("push-close", ""),
        ("handover-two-targets", ""),
        ("group-freed", ""),
        ("consumer-list-middle", "unlink-at-the-head-only"),
        ("interest", "iteration-returns-deleted"),
        ("release-behind", "release-without-owner"),
    ],
)
def test_who_is_not_asked_would_have_said_nothing(
    program: str, mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [traces.follow(program, mutant, 12)]
    monkeypatch.setattr(simulation, "KINDS", {})
    found.append(traces.follow(program, mutant, 12))
    same = [(f.steps, f.counts, f.actions, f.system, f.rejected, f.notes) for f in found]
    assert same[0] == same[1]


def test_rejects_a_word_that_no_case_has() -> None:
    assert traces.main(["nosuch"]) == 2
