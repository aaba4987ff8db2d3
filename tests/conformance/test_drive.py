"""The drive: each mistake violates its property, with a short script that replays; what is right violates none."""

from __future__ import annotations

import runpy
import shutil
from functools import lru_cache
from pathlib import Path
from typing import get_type_hints

import pytest

from seriatim_models.cli import run
from seriatim_models.conformance.amqp import AmqpBroker
from seriatim_models.conformance.child import ChildProcess
from seriatim_models.conformance.driving import drive
from seriatim_models.conformance.judging import ANSWERS, black_box_profiles, default_profile, judged
from seriatim_models.conformance.local import Local, load
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.reference import Reference
from seriatim_models.conformance.script import (
    NUMBERS,
    Script,
    ScriptError,
    ScriptStep,
    read_script,
    write_script,
)
from seriatim_models.conformance.search import SearchBounds, SearchOutcome, search
from seriatim_models.conformance.selftest import self_test
from seriatim_models.history import read_history
from seriatim_models.properties.base import Verdict

from .conftest import SPEC, example, faulty

MISTAKES = runpy.run_path(str(SPEC / "faulty.py"))["MISTAKES"]
BOUNDS = SearchBounds(seconds=100.0, scripts=120)
"""The number of scripts ends these searches, on a slow machine too; the seconds are for one that hangs."""


@lru_cache
def searched(command: str) -> SearchOutcome:
    return search(ChildProcess(command, patience=60.0), PROFILES["strict-qpid"], BOUNDS, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistake", [m for m, (breaks, _) in MISTAKES.items() if breaks.startswith("P")]
)
def test_each_mistake_violates_its_property(mistake: str) -> None:
    outcome = searched(faulty(mistake))
    assert outcome.ended == "scripts"
    shortest = {w.property: w for w in outcome.witnesses}
    assert MISTAKES[mistake][0] in shortest
    assert len(shortest[MISTAKES[mistake][0]].run.steps) <= 8


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [example(), f"node {SPEC / 'example.js'}"], ids=["python", "node"]
)
def test_the_examples_are_right(command: str) -> None:
    # Node is another language's interpreter, not a package of .venv; with the Python example the same is always run.
    if not shutil.which(command.split()[0]):
        pytest.skip(f"{command.split()[0]} is not installed")
    system = ChildProcess(command)
    try:
        assert [c for c in self_test(system) if c.why and not c.skipped] == []
    finally:
        system.end()
    outcome = searched(command)
    assert outcome.witnesses == []
    # Of what a client can see of them, every property was tested.
    findings = {f.property: f.verdict for f in outcome.findings}
    assert {findings[p] for p in ("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9")} == {
        Verdict.OK
    }


def test_the_reference_keeps_every_property_that_it_promises() -> None:
    outcome = search(Local(Reference), PROFILES["strict-qpid"], BOUNDS, seed=1)
    assert outcome.witnesses == []
    assert all(
        f.n_tested for f in outcome.findings if f.property in ("P1", "P5", "P6", "P7", "P8", "P9")
    )


def test_a_requeue_to_the_tail_is_told_apart_by_profile() -> None:
    outcome = searched(faulty("requeues-to-the-tail"))
    assert "P5" in outcome.profiles["strict-qpid"]
    assert outcome.profiles["amqp-0-9-1-4.7"] == []


def test_the_shortest_script_of_a_requeue_to_the_tail_cannot_be_shorter() -> None:
    (witness,) = [
        w for w in searched(faulty("requeues-to-the-tail")).witnesses if w.property == "P5"
    ]
    # Two messages, and one of them taken (before the second or after it) and requeued, by closing at the end.
    assert sorted(step.op for step in witness.run.steps) == ["get", "publish", "publish"]
    assert witness.again == 3


def test_the_same_seed_draws_the_same() -> None:
    first = searched(example())
    searched.cache_clear()
    second = searched(example())
    assert (first.steps, first.events) == (second.steps, second.events)


def test_steps_that_make_no_sense_are_left_out() -> None:
    steps = [
        ScriptStep(op="ack"),
        ScriptStep(op="cancel", ctag="c1"),
        ScriptStep(op="close"),
        ScriptStep(op="publish", q="q"),
        ScriptStep(op="get", q="q"),
        ScriptStep(op="ack", which=5),
        ScriptStep(op="ack", which=0),
    ]
    done = drive(Local(Reference), steps)
    assert [(s.op, s.m) for s in done.steps] == [("publish", "m0"), ("get", ""), ("ack", "m0")]
    assert not done.fault


def test_a_fault_counts_against_whoever_made_it() -> None:
    class Broken:
        def publish(self, q: str, m: str) -> None: ...

        def get(self, q: str) -> None:
            raise KeyError("oh")

    done = drive(Local(Broken), [ScriptStep(op="get", q="q")])
    finding = judged(done, ())[0]
    assert (finding.property, finding.verdict) == (ANSWERS, Verdict.VIOLATED)
    assert "KeyError" in finding.explanation


def test_a_broker_of_amqp_is_no_log() -> None:
    """Its drive has no steps of a log, and it is held to every promise by default."""
    assert not {"read", "seek", "commit", "partitions"} & AmqpBroker.can

    class Broker:
        can = AmqpBroker.can
        means = AmqpBroker.means

    assert default_profile(Broker()).id == "any"  # type: ignore[arg-type]


def test_the_profiles_of_clients_leave_out_the_white_box() -> None:
    assert {"strict-qpid", "amqp-0-9-1-4.7"} <= set(black_box_profiles())
    assert "reference" not in black_box_profiles()


# ---- files


def test_a_script_is_kept_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    script = Script(
        steps=[ScriptStep(op="nack", ch=2, m="m1", requeue=False)], seed=3, violates="P1"
    )
    write_script(path, script)
    assert read_script(path) == script


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no script"),
        ("[]", "no script"),
        ('{"schema": "other/1"}', "field schema"),
        (
            '{"schema": "seriatim-script/1", "steps": [{"op": "fly"}]}',
            r"steps\[0\].op: 'fly' is none of",
        ),
        (
            '{"schema": "seriatim-script/1", "steps": [{"op": "get", "wings": 2}]}',
            r"wings.*steps\[0\]|steps",
        ),
        (
            '{"schema": "seriatim-script/1", "steps": [{"op": "get", "ch": "1"}]}',
            r"\$.steps\[0\].ch",
        ),
        ('{"schema": "seriatim-script/1", "steps": [{"op": "qos", "scope": "world"}]}', "scope"),
        (
            '{"schema": "seriatim-script/1", "steps": ['
            + ",".join(['{"op": "get"}'] * 10001)
            + "]}",
            "more than",
        ),
        (
            '{"schema": "seriatim-script/1", "steps": [{"op": "get", "q": "' + "q" * 300 + '"}]}',
            "longer than",
        ),
        (
            '{"schema": "seriatim-script/1", "steps": [{"op": "publish", "delay": -5}]}',
            r"field steps\[0\].delay: -5 is not 0 to 60000",
        ),
        (
            '{"schema": "seriatim-script/1", "steps": [{"op": "publish", "ttl": 60001}]}',
            r"field steps\[0\].ttl: 60001 is not",
        ),
        (
            '{"schema": "seriatim-script/1", "steps": [{"op": "qos", "prefetch": -1}]}',
            r"field steps\[0\].prefetch: -1 is not 0 to 65535",
        ),
        (
            '{"schema": "seriatim-script/1", "steps": [{"op": "publish", "prio": 256}]}',
            r"field steps\[0\].prio: 256 is not 0 to 255",
        ),
    ],
)
def test_rejects_a_bad_script(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScriptError, match=message):
        read_script(path)


def test_each_number_of_a_script_has_its_bounds() -> None:
    numbers = {
        field for field, kind in get_type_hints(ScriptStep).items() if kind in (int, int | None)
    }
    assert numbers == set(NUMBERS)


# ---- the command


def conform(out: Path, scripts: int, *implementation: str) -> int:
    """The exit code of a short drive."""
    drawn = ["--scripts", str(scripts), "--seed", "1", "--out", str(out)]
    return run(["conform", *implementation, *drawn])


def test_what_violates_is_kept_and_replays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    command = faulty("loses-on-close")
    assert conform(tmp_path, 30, "--exec", command) == 1
    output = capsys.readouterr().out
    assert "The shortest way to violate P1" in output
    assert f"--replay {tmp_path / 'P1.json'}" in output
    assert "seed 1" in output
    kept = read_history(tmp_path / "P1.jsonl")
    assert not kept.quarantine
    assert kept.events
    assert run(["conform", "--exec", command, "--replay", str(tmp_path / "P1.json")]) == 1
    assert run(["conform", "--exec", example(), "--replay", str(tmp_path / "P1.json")]) == 0


class LastInFirstOut:
    """A stack with the methods of a queue."""

    def __init__(self) -> None:
        self.items: list[str] = []

    def put(self, item: str) -> None:
        self.items.append(item)

    def get(self) -> str | None:
        return self.items.pop() if self.items else None


def test_one_mistake_that_several_properties_see_is_shown_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert conform(tmp_path, 40, "--python", f"{__name__}:LastInFirstOut") == 1
    output = capsys.readouterr().out
    assert output.count("publish q=q m=m1") == 1
    assert output.count("The shortest way to violate P4, P5, P20:") == 1
    scripts = {
        read_script(path).violates: read_script(path).steps for path in tmp_path.glob("P*.json")
    }
    assert scripts["P4"] == scripts["P5"] == scripts["P20"]


@pytest.mark.parametrize(
    ("fault", "at_the_end"), [("skips-tags", True), ("pushes-after-cancel", False)]
)
def test_it_is_said_who_takes_out_what_is_left(
    fault: str, at_the_end: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A witness may end with what no command of the script asked for."""
    assert conform(tmp_path, 60, "--exec", faulty(fault)) == 1
    output = capsys.readouterr().out
    assert ("channel 1000 takes out" in " ".join(output.split())) == at_the_end


def test_a_right_one_ends_well_and_its_history_is_kept(tmp_path: Path) -> None:
    assert conform(tmp_path, 30, "--exec", example()) == 0
    assert read_history(tmp_path / "well.jsonl").events


def test_a_queue_of_the_standard_library_needs_no_adapter(tmp_path: Path) -> None:
    assert conform(tmp_path, 20, "--python", "queue:Queue") == 0
    assert conform(tmp_path, 20, "--python", "queue:LifoQueue") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--exec", "true", "--python", "queue:Queue"],
        ["--exec", "true"],
        ["--python", "queue"],
        ["--python", "no.such.module:x"],
        ["--python", "queue:Nothing"],
        ["--python", "json:dumps"],
        ["--amqp", "nonsense"],
        ["--amqp", "amqp://guest:guest@127.0.0.1:1/"],
        ["--exec", "true", "--queue-argument", "x"],
        ["--amqp", "amqp://127.0.0.1:1/", "--queue-argument", "x"],
        ["--exec", "true", "--profile", "no-such"],
        ["--exec", "true", "--replay", "no-such.json"],
    ],
)
def test_rejects_bad_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_the_self_test_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conform", "--exec", example(), "--self-test"]) == 0
    assert run(["conform", "--exec", faulty("loses-on-close"), "--self-test"]) == 1
    assert "close requeues what the channel held" in capsys.readouterr().out


def test_rejects_what_is_no_factory() -> None:
    with pytest.raises(Fault, match="MODULE:FACTORY"):
        load("queue")


def test_the_self_test_tries_count() -> None:
    class Counts:
        def __init__(self, wrong: int = 0) -> None:
            self.items: list[str] = []
            self.held: dict[int, str] = {}
            self.wrong = wrong

        def publish(self, m: str) -> None:
            self.items.append(m)

        def get(self) -> tuple[str, int] | None:
            if not self.items:
                return None
            tag = len(self.held) + 1
            self.held[tag] = self.items.pop(0)
            return self.held[tag], tag

        def ack(self, dtag: int) -> None:
            self.held[dtag] = ""

        def count(self) -> tuple[int, int]:
            return len(self.items) + self.wrong, sum(map(bool, self.held.values()))

    for wrong in (0, 1):
        checks = self_test(Local(lambda wrong=wrong: Counts(wrong)))  # type: ignore[misc]
        (count,) = (check for check in checks if check.sentence.startswith("count says"))
        assert bool(count.why) == bool(wrong)
        assert not count.skipped
