"""`--property`: a rule and a model of one's own, judged by audit and conform."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.cli import run
from seriatim_models.history import Event, write_history

SPEC = Path(__file__).parents[2] / "spec" / "own"


def test_audit_judges_by_ones_own_property(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "run.jsonl"
    events = [("publish", "pay-1"), ("publish", "refund-1"), ("deliver", "refund-1")]
    write_history(path, [Event(i=i, t=i, ev=ev, m=m) for i, (ev, m) in enumerate(events)])
    named = f"{SPEC / 'refunds.py'}:RefundAfterPayment"
    ran = run("audit", str(path), "--property", named, "--json", "-")
    assert ran.code == 1
    [mine] = [r for r in json.loads(ran.out)["results"] if r["property"] == "REFUND"]
    assert (mine["verdict"], mine["n_tested"]) == ("violated", 1)
    ran = run("audit", str(path), "--property", "nowhere:Rule")
    assert (ran.code, "there is no such module" in ran.err) == (2, True)


def test_conform_judges_by_a_model(tmp_path: Path, run: Callable[..., Any]) -> None:
    named = f"{SPEC / 'stack.py'}:Stack"
    ran = run(
        "conform", "--python", "queue:Queue", "--property", named, "--scripts", "20", "--seed", "1",
        "--out", str(tmp_path), "--json", "-",
    )  # fmt: skip
    assert ran.code == 1
    found = json.loads(ran.out)["results"]
    assert {r["property"] for r in found if r["verdict"] == "violated"} == {"STACK"}


def test_lint_names_what_nothing_can_be_said_of(tmp_path: Path, run: Callable[..., Any]) -> None:
    """A file of which nothing was understood, and what its format cannot say."""
    path = tmp_path / "traces.jsonl"
    has = [{"key": "messaging.system", "value": {"stringValue": "kafka"}}]
    times = {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    span = {"name": "t process", "kind": 5, "attributes": has, **times}
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    ran = run("lint", str(path), "--json", "-")
    hints = {hint["id"]: hint["sentence"] for hint in json.loads(ran.out)}
    assert set(hints) == {"gaps", "left-out", "format", "empty"}
    assert run("audit", str(path)).code == 3


@pytest.mark.parametrize("command", ["stream", "conform"])
def test_what_a_default_profile_means_is_said_where_it_is_another_than_that_of_audit(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run([command, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Without --profile" in shown
    assert "is held against the" in shown
