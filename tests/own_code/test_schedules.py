"""`conform --python MODULE:FACTORY --schedules`: mistakes of small queues are reported, right queues are not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.conformance.schedules.clients import (
    ClientCall,
    Clients,
    completed,
    drawn,
    surface_of,
)
from seriatim_models.conformance.schedules.history import events, intervals, unexplained
from seriatim_models.conformance.schedules.search import (
    ENDS,
    LINEARIZABLE,
    default_profile,
    implementation,
    run_clients,
    search,
)
from seriatim_models.conformance.schedules.sequential import FIFO, LEAST, LIFO
from seriatim_models.explorer.linearize import CallInterval
from seriatim_models.explorer.model.world import Record
from seriatim_models.properties.base import Verdict

HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """`small_queues` can be imported, as the command would have it from its folder."""
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.delitem(sys.modules, "small_queues", raising=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "violated"),
    [
        ("NotifyOne", ENDS),
        ("IfForWhile", ENDS),
        ("CheckThenAct", ENDS),
        ("NotifyOnlyIfEmpty", ENDS),
        ("LostWakeUp", ENDS),
        ("PeekThenPop", "P1"),
        ("OverTheLimit", LINEARIZABLE),
        ("OppositeLocks", ENDS),
        ("LeasedTwice", "P2"),
        ("TasksLoseWakeUp", ENDS),
        ("TasksHandOver", "P20"),
        ("TasksIfForWhile", ENDS),
    ],
)
def test_a_mistake_is_reported_with_few_calls_and_its_schedule(name: str, violated: str) -> None:
    target = implementation(f"small_queues:{name}")
    profile = default_profile(target)
    outcome = search(target, profile, seconds=60, seed=1)
    assert outcome.verdict is Verdict.VIOLATED
    case = outcome.witness
    assert case is not None
    assert case.property == violated
    assert len([c for t in case.clients.threads for c in t]) <= 4
    again, what, _ = run_clients(target, profile, case.clients, None, case.token)
    assert (again.verdict, what) == ("violated", violated)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "order"),
    [
        ("small_queues:Right", FIFO),
        ("small_queues:RightStack", LIFO),
        ("small_queues:Leases", ""),
        ("small_queues:Tasks", FIFO),
        ("small_queues:two_ends", FIFO),
        ("asyncio:Queue", FIFO),
        ("asyncio:LifoQueue", LIFO),
        ("queue:Queue", FIFO),
        ("queue:PriorityQueue", LEAST),
        ("queue:_PySimpleQueue", FIFO),
    ],
)
def test_what_is_right_is_not_reported(where: str, order: str) -> None:
    target = implementation(where)
    assert target.order == order
    outcome = search(target, default_profile(target), seconds=20, seed=2, programs=7)
    assert outcome.verdict is Verdict.OK, outcome.why
    assert outcome.exhausted


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("Polled", True),
        ("PolledByError", True),
        ("PolledWithoutLock", False),
        ("WithoutGet", True),
        ("WithoutGetOrLock", False),
    ],
)
def test_a_get_that_does_not_wait_may_find_nothing(name: str, right: bool) -> None:
    target = implementation(f"small_queues:{name}")
    assert {"get", "put"}.isdisjoint(target.surface.ways)
    one, other = ClientCall(op="get_nowait"), ClientCall(op="put_nowait", m="m0")
    clients = completed(target.surface, Clients(threads=((one,), (one,), (other,))))
    assert clients.after
    result, violated, _ = run_clients(target, default_profile(target), clients, 60)
    assert (result.verdict, violated) == (("ok", "") if right else ("violated", "P1")), result.why


CHANGE = "return self.state.compare_and_set(expected, new)"
LOOK_THEN_SET = "return self.state.get() == expected and self.state.set(new) is None"
FIRST_CLIENTS = """
from seriatim_models.conformance.schedules.clients import shapes
from seriatim_models.conformance.schedules.search import default_profile, implementation, run_clients

target = implementation("own_queue:PulledByAtomicReads", ["seriatim"])
result, violated, _ = run_clients(target, default_profile(target), shapes(target.surface)[0], 100)
print(result.verdict, violated)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [("", "ok"), (LOOK_THEN_SET, "violated P2")],
)
def test_the_queue_of_this_project_is_run_like_any_other(
    wrong: str, said: str, tmp_path: Path
) -> None:
    """A message that two consumers take at once; and without the mistake every schedule of the same clients."""
    root = Path(__file__).parents[2]
    shutil.copytree(root / "reference" / "seriatim", tmp_path / "seriatim")
    queue = tmp_path / "seriatim" / "queue.py"
    source = queue.read_text(encoding="utf-8")
    assert CHANGE in source
    queue.write_text(source.replace(CHANGE, wrong or CHANGE), encoding="utf-8")
    folders = [tmp_path, root / "spec" / "conform", root / "models"]
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_CLIENTS],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.strip() == said, ran.stderr


def test_a_time_limit_that_may_run_out_only_once_is_no_endless_wait() -> None:
    target = implementation("queue:Queue")
    twice = (ClientCall(op="get_timeout"), ClientCall(op="get_timeout"))
    clients = Clients(threads=((ClientCall(op="put_nowait", m="m0"),), twice))
    result, violated, _ = run_clients(target, default_profile(target), clients, 60)
    assert (result.verdict, violated) == ("ok", ""), result.why


def test_without_a_case_there_is_no_ok() -> None:
    """No set of clients was run to its end: nothing is claimed."""
    target = implementation("queue:Queue")
    outcome = search(target, default_profile(target), seconds=20, seed=2, programs=0)
    assert outcome.verdict is Verdict.INCONCLUSIVE


def test_the_same_seed_draws_the_same_clients() -> None:
    target = implementation("queue:Queue")
    assert drawn(target.surface, 3, 50) == drawn(target.surface, 3, 50)
    assert len({str(drawn(target.surface, seed, 50)) for seed in range(9)}) > 3


def call(
    at: int, until: int | None, op: str, m: str = "", result: str | None = None
) -> CallInterval:
    return CallInterval(f"t{at}", (op, m) if m else (op,), at, until, result)


def test_who_waits_for_ever_must_have_to() -> None:
    waits = [call(0, None, "get"), call(1, 2, "put", "m0")]
    assert "need not" in unexplained(waits, FIFO, 0)
    assert not unexplained([call(0, None, "get")], FIFO, 0)
    assert not unexplained([call(0, None, "get_timeout"), call(1, 2, "put", "m0")], FIFO, 0)
    assert not unexplained([*waits, call(3, 4, "get", result="m0")], FIFO, 0)
    full = [call(0, 1, "put", "m0"), call(2, None, "put", "m1")]
    assert not unexplained(full, FIFO, 1)
    assert "need not" in unexplained(full, FIFO, 2)


def test_results_must_be_those_of_one_order() -> None:
    put = [call(0, 1, "put", "m0"), call(2, 3, "put", "m1")]
    assert not unexplained([*put, call(4, 5, "get", result="m0")], FIFO, 0)
    assert "not linearizable" in unexplained([*put, call(4, 5, "get", result="m1")], FIFO, 0)
    assert not unexplained([*put, call(4, 5, "get", result="m1")], LIFO, 0)
    assert "not linearizable" in unexplained(put, FIFO, 1)


def test_a_history_has_an_event_for_each_end_of_a_call() -> None:
    clients = Clients(threads=((ClientCall(op="put", m="m0"),), (ClientCall(op="get"),)))
    args = [(0, "invoke", "m0"), (1, "invoke", ""), (0, "ok", ""), (1, "ok", "m0")]
    records = [
        Record(0, "", "call", {"number": n, "ph": ph, "m": m, "dtag": None, "redelivered": None})
        for n, ph, m in args
    ]
    made = [(e.ev, e.ph, e.m) for e in events(clients, records, leases=False) if e.ev != "ch_open"]
    assert made == [
        ("publish", "invoke", "m0"),
        ("get", "invoke", ""),
        ("publish", "ok", "m0"),
        ("get", "ok", "m0"),
    ]
    assert [str(c) for c in intervals(clients, records)] == [
        "client1: put('m0') -> None",
        "client2: get() -> 'm0'",
    ]


def test_what_clients_cannot_call_is_said() -> None:
    class Neither:
        pass

    class HalfOfTasks:
        async def put(self, m: str) -> None: ...

        def get(self) -> str:
            return ""

    for kind, why in ((Neither, "neither put and get"), (HalfOfTasks, "the other is not")):
        with pytest.raises(ValueError, match=why):
            surface_of(kind(), kind)


def test_the_command_shows_saves_and_replays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    common = ["conform", "--python", "small_queues:OverTheLimit", "--schedules"]
    report = tmp_path / "report.json"
    kept = ["--out", str(tmp_path), "--json", str(report)]
    assert run([*common, "--seed", "1", "--seconds", "30", *kept]) == 1
    shown = capsys.readouterr().out
    assert "client1: put_nowait" in shown
    assert "racing pair" in shown
    assert "seed 1" in shown
    assert "play.py::play" not in shown
    assert json.loads(report.read_text())["programs"][0]["verdict"] == "violated"
    saved = tmp_path / "schedules-linearizable.json"
    assert str(saved) in shown
    assert run([*common, "--replay", str(saved)]) == 1
    assert "not linearizable" in capsys.readouterr().out
    # Whoever sends such a file names modules in it: to look for `strangers.part` would run `strangers`.
    package = tmp_path / "strangers"
    package.mkdir()
    (package / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (package / "part.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    document = json.loads(saved.read_text())
    document["modules"].append("strangers.part")
    saved.write_text(json.dumps(document))
    assert run([*common, "--replay", str(saved)]) == 2
    assert "if it may be run, say --module strangers.part" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--exec", "true", "--schedules"], "--python alone"),
        (["--python", "queue:Queue", "--schedules", "--steps", "3"], "--python alone"),
        (["--python", "queue:Queue", "--module", "queue"], "--module is for --schedules"),
        (
            ["--python", "queue:Queue", "--schedules", "--module", "no_such"],
            "no module of this name",
        ),
        (["--python", "collections:deque", "--schedules"], "neither put and get"),
        (["--python", "queue:Queue", "--schedules", "--replay", "no.json"], "cannot be read"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["conform", *arguments]) == 2
    error = capsys.readouterr().err
    assert why in " ".join(error.split())
    assert "Traceback" not in error
