"""`seriatim audit` of systems that nobody named: what some system documents is open, what none does is a violation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.cli import run
from seriatim_models.history import Event, Header, write_history
from seriatim_models.pipeline.synthetic.injected import KINDS, scene


class Workers:
    """A recording of workers without channels, tags or flags."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, ev: str, ph: str = "", **fields: Any) -> None:
        i = len(self.events)
        self.events.append(Event(i=i, t=10 * i, ev=ev, ph=ph, q="q", **fields))

    def put(self, *ms: str, **fields: Any) -> None:
        for m in ms:
            for ph in ("invoke", "ok"):
                self.add("publish", ph, m=m, proc="p", pub="p", pseq=int(m[1:]), **fields)

    def get(self, m: str, by: str = "a", **fields: Any) -> None:
        self.add("get", "invoke", proc=by)
        self.add("get", "ok", m=m, proc=by, **fields)

    def done(self, *ms: str, by: str = "a") -> None:
        for m in ms:
            self.add("ack", ms=[m], proc=by)

    def verdicts(self, folder: Path, *options: str) -> tuple[int, dict[str, str]]:
        """The exit code of an audit, and the verdicts of the properties."""
        path, out = folder / "run.jsonl", folder / "found.json"
        write_history(path, self.events, Header(run="run", lvl="api"))
        code = run(["audit", str(path), "--json", str(out), *options])
        results = json.loads(out.read_text())["results"]
        return code, {r["property"]: r["verdict"] for r in results}


def sqs_fifo() -> Workers:
    """Two groups, of which the later one is received first."""
    w = Workers()
    w.put("m0", "m1", key="g")
    w.put("m2", key="h")
    for m, key in (("m2", "h"), ("m0", "g"), ("m1", "g")):
        w.get(m, key=key)
        w.done(m)
    return w


def elasticmq() -> Workers:
    """A standard queue: another order, and a message again when its visibility timeout is over."""
    w = Workers()
    w.put("m0", "m1")
    w.get("m1")
    w.get("m0")
    w.get("m1", by="b")
    w.done("m1", by="b")
    w.done("m0")
    return w


def nsq() -> Workers:
    """A message that timed out comes again, and once more after it was finished."""
    w = Workers()
    w.put("m0")
    w.get("m0", attempt=1)
    w.get("m0", by="b", attempt=2)
    w.done("m0", by="b")
    w.get("m0", attempt=3)
    return w


@pytest.mark.parametrize(("system", "expected"), [(sqs_fifo, 0), (elasticmq, 3), (nsq, 3)])
def test_what_a_system_documents_is_no_violation_where_nothing_is_declared(
    system: Any, expected: int, tmp_path: Path
) -> None:
    """Nor is it ok, if other systems promise that it does not happen: the system has to be named."""
    code, found = system().verdicts(tmp_path)
    assert code == expected
    assert "violated" not in found.values()


def test_it_is_one_under_a_profile_that_promises_otherwise(tmp_path: Path) -> None:
    assert elasticmq().verdicts(tmp_path, "--profile", "rabbit-classic")[0] == 1
    assert elasticmq().verdicts(tmp_path, "--profile", "fifo-adt")[0] == 1
    assert elasticmq().verdicts(tmp_path, "--profile", "sqs-standard")[0] == 0
    assert sqs_fifo().verdicts(tmp_path, "--profile", "sqs-fifo")[0] == 0


def test_the_reason_names_who_would_allow_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elasticmq().verdicts(tmp_path)
    shown = " ".join(capsys.readouterr().out.split())
    assert "name the system by --profile" in shown


def test_a_stack_is_not_ok_until_somebody_says_that_it_is_none(tmp_path: Path) -> None:
    stack = Workers()
    stack.put("m0", "m1", "m2")
    for m in ("m2", "m1", "m0"):
        stack.get(m)
        stack.done(m)
    assert stack.verdicts(tmp_path)[0] == 3
    assert stack.verdicts(tmp_path, "--profile", "sqs-standard")[0] == 0
    assert stack.verdicts(tmp_path, "--profile", "fifo-adt")[0] == 1
    assert stack.verdicts(tmp_path, "--profile", "any")[0] == 3
    results = json.loads((tmp_path / "found.json").read_text())["results"]
    assert {r["property"] for r in results if r.get("decides")} == {"P4", "P5", "P20"}


def test_a_message_passed_over_after_a_requeue_is_open_where_there_are_tags(tmp_path: Path) -> None:
    """AMQP does not say when a requeued message is available again; strict order does."""
    tagged = Workers()
    tagged.events, _ = scene(next(k for k in KINDS if k.id == "P6:late"), 0, 0, 100_000)
    assert any(e.dtag is not None for e in tagged.events)
    code, found = tagged.verdicts(tmp_path)
    assert (code, found["P6"]) == (3, "inconclusive")
    assert tagged.verdicts(tmp_path, "--profile", "strict-qpid")[0] == 1
    assert tagged.verdicts(tmp_path, "--profile", "amqp-0-9-1-4.7")[0] == 0


def test_what_no_system_documents_is_a_violation(tmp_path: Path) -> None:
    doubled = Workers()
    doubled.put("m0")
    doubled.get("m0", autoack=True)
    doubled.get("m0", autoack=True)
    code, found = doubled.verdicts(tmp_path)
    assert (code, found["P1"]) == (1, "violated")
    phantom = Workers()
    phantom.put("m0")
    phantom.get("m7")
    assert phantom.verdicts(tmp_path)[0] == 1


def test_a_system_without_positions_allows_no_log_to_leave_one_out(tmp_path: Path) -> None:
    for part, verdict in ((0, "violated"), (None, "inconclusive")):
        log = Workers()
        for n in range(3):
            for ph in ("invoke", "ok"):
                log.add("publish", ph, m=f"m{n}", proc="p", part=part, pos=n)
        for n in (0, 2, 1):
            log.add("deliver", m=f"m{n}", proc="a", part=part, pos=n)
        # Positions alone are those of a stream of which several work queues may read.
        code, found = log.verdicts(tmp_path)
        assert (code, found["P15"]) == (1 if verdict == "violated" else 3, verdict)


def test_delivery_tags_show_what_kind_of_system_it_is(tmp_path: Path) -> None:
    tagged = Workers()
    tagged.put("m0")
    for n, by in enumerate("ab"):
        tagged.add("deliver", m="m0", conn=by, ch=1, dtag=1 + n)
    tagged.add("ack", ms=["m0"], conn="a", ch=1, dtag=1)
    assert tagged.verdicts(tmp_path)[1]["P2"] == "violated"


def test_a_marked_second_delivery_is_open_until_both_holders_are_answered(
    tmp_path: Path,
) -> None:
    marked = Workers()
    marked.put("m0")
    for n, by in enumerate("ab"):
        marked.add("deliver", m="m0", conn=by, ch=1, dtag=1 + n, redelivered=bool(n))
    marked.add("ack", ms=["m0"], conn="a", ch=1, dtag=1)
    assert marked.verdicts(tmp_path)[1]["P2"] != "violated"
    for by in "ab":  # either may have had it first, and have ended unseen
        assert marked.verdicts(tmp_path)[1]["P2"] != "violated"
        for ph in ("invoke", "ok"):
            marked.add("ch_close", ph, conn=by, ch=1)
    assert marked.verdicts(tmp_path)[1]["P2"] == "violated"


def test_delivery_ids_are_no_tags_of_a_system_that_flags_what_comes_again(tmp_path: Path) -> None:
    """In AMQP 1.0 what is released counts no failure (3.2.1, delivery-count), and so comes again unmarked."""
    for credit, code in ((10, 3), (None, 1)):
        session = Workers()
        session.put("m0")
        session.add("consume", ctag="l", conn="c", ch=1, credit=credit)
        for dtag in (5, 6):
            session.add("deliver", m="m0", ctag="l", conn="c", ch=1, dtag=dtag, redelivered=False)
            session.add("nack", dtag=dtag, requeue=True, conn="c", ch=1)
        assert session.verdicts(tmp_path)[0] == code
