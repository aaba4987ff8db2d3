"""Implementations that are broken or mean no good: a verdict or one sentence, in time, and nobody left behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seriatim_models.cli import run
from seriatim_models.conformance.child import ChildProcess, marked
from seriatim_models.conformance.concurrent.objects import ThreadedObject
from seriatim_models.conformance.driving import DrivenRun, drive
from seriatim_models.conformance.local import Local
from seriatim_models.conformance.protocol import CONCURRENT, Fault, Push, Request
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.supervisor import SUPERVISED, supervised

from .conftest import example, faulty

PATIENCE = 1.0
START = 60.0
"""Seconds for an interpreter to start, where that is not what a test is about."""
IN_TIME = 60.0
"""Seconds: many times what is needed, and far below what a hang takes."""

TAKE_AND_GIVE_BACK = [
    ScriptStep(op="publish", q="q", m="m0"),
    ScriptStep(op="get", q="q"),
    ScriptStep(op="nack", m="m0"),
]

Program = Callable[[str], str]


def hello(then: str) -> str:
    """A program that introduces itself and then does something else."""
    return f"""
import json, os, signal, sys, time
print(json.dumps({{"id": json.loads(sys.stdin.readline())["id"], "ok": True, "protocol": "seriatim-conform/1",
                  "can": ["publish", "get"]}}), flush=True)
{then}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("import time; time.sleep(1e6)", "silent", "no answer to hello within 1 s"),
        (
            "print('{\"id\": 1', end='', flush=True); import time; time.sleep(1e6)",
            "silent",
            "half a line",
        ),
        ("print('Hello!')", "garbage", "no JSON object"),
        ("print([1, 2])", "garbage", "no JSON object"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\n')", "garbage", "no JSON object"),
        (
            "import sys\nwhile True: sys.stdout.write('x' * 4096)",
            "flood",
            "line longer than 65,536 bytes",
        ),
        ('while True: print(\'{"ev": "deliver", "m": "m", "dtag": 1}\')', "flood", "more than"),
        ("raise SystemExit('no luck')", "died", "exit code 1 .* no luck"),
        (
            "import sys; print('Traceback (most recent call last):', file=sys.stderr); sys.exit(1)",
            "died",
            "exit code 1 when hello was asked$",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "died", "killed by signal 9"),
        ('print(\'{"id": 1, "ok": true}\')', "start", "speaks 'no protocol'"),
        ('print(\'{"id": 1, "ok": false, "why": "closed today"}\')', "start", "closed today"),
        ("print('{\"id\": 7}')", "garbage", "answered 7 when 1 was asked"),
        ("print('{\"ok\": true}')", "garbage", "answered without an id when 1 was asked"),
        (
            'print(\'{"id": 1, "protocol": "seriatim-conform/1", "can": ["fly"]}\')',
            "start",
            "fly is none of",
        ),
    ],
)
def test_rejects_a_bad_beginning(
    program: Program, source: str, kind: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChildProcess, "starting", PATIENCE)
    begun = time.monotonic()
    with pytest.raises(Fault, match=message) as caught:
        ChildProcess(program(source), patience=PATIENCE)
    assert caught.value.kind == kind
    assert time.monotonic() - begun < IN_TIME


@pytest.mark.parametrize("command", ["/nowhere/at/all", "", "'unclosed"])
def test_rejects_what_cannot_be_started(command: str) -> None:
    with pytest.raises((Fault, ValueError), match=r"cannot be started|No closing quotation"):
        ChildProcess(command)


def started(command: str) -> ChildProcess:
    """One that has introduced itself, however long that took; from then on it has `PATIENCE`."""
    child = ChildProcess(command, patience=START)
    child._patience = PATIENCE
    return child


def test_who_is_late_with_an_ended_program_does_nothing_to_the_next(program: Program) -> None:
    child = started(
        program(
            hello(
                "for line in sys.stdin:\n"
                "    print(json.dumps({'id': json.loads(line)['id'], 'ok': True}), flush=True)"
            )
        )
    )
    client, ended = child.connect(1, lambda push: None), child.program
    child.end()
    child.reset()
    with pytest.raises(Fault, match="was ended"):
        client.do(Request(op="sync"))
    ended.failed(Fault("silent", "gave no answer"))
    ended.end()
    child.reset()
    assert child.program is not ended
    child.end()


PUSHES_LATE = """
print(json.dumps({'id': 1, 'ok': True, 'protocol': 'seriatim-conform/2', 'can': ['publish', 'consume']}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["op"] == "reset":
        print(json.dumps({"ev": "deliver", "ch": 1, "ctag": "c", "m": "m0", "dtag": 1}), flush=True)
    print(json.dumps({"id": asked["id"], "ok": True}), flush=True)
"""


def test_what_is_pushed_until_a_reset_is_answered_is_of_the_script_before(program: Program) -> None:
    source = "import json, sys\nsys.stdin.readline()\n" + PUSHES_LATE
    child = ChildProcess(program(source), patience=START, protocol=CONCURRENT)
    taken: list[Push] = []
    child.connect(1, taken.append)
    child.reset()
    child.connect(2, taken.append)
    with pytest.raises(Fault, match="on channel 1, which nobody opened"):
        child.reset()
    assert not taken
    child.end()


def test_a_pipe_is_open_as_long_as_somebody_reads_it(program: Program) -> None:
    """A closed one's number is soon that of the next program's pipe, whose answers the late reader would take."""
    source = "import json, sys\nsys.stdin.readline()\n" + PUSHES_LATE
    child, reads, goes_on = (
        ChildProcess(program(source), patience=START, protocol=CONCURRENT),
        threading.Event(),
        threading.Event(),
    )

    def receive(push: Push) -> None:
        reads.set()
        goes_on.wait(IN_TIME)

    child.connect(1, receive)

    def ask() -> None:
        with contextlib.suppress(Fault):
            child.ask(Request(op="reset"))

    asking = threading.Thread(target=ask)
    asking.start()
    assert reads.wait(IN_TIME)
    output = child.program.process.stdout
    assert output is not None
    child.end()
    asking.join(IN_TIME)
    assert not output.closed
    goes_on.set()
    until = time.monotonic() + IN_TIME
    while not output.closed and time.monotonic() < until:
        time.sleep(0.01)
    assert output.closed


@pytest.mark.parametrize("kind", [Local, ThreadedObject])
def test_what_an_object_pushes_that_has_given_way_is_not_of_the_next(kind: type[Local]) -> None:
    kept: list[Callable[..., None]] = []

    class Keeps:
        """Its threads may go on when another has taken its place."""

        def publish(self, q: str, m: str) -> None: ...

        def consume(self, ch: int, q: str, ctag: str, deliver: Callable[..., None]) -> None:
            kept.append(deliver)

    system, taken = kind(Keeps), list[Push]()

    def consumed(calls: int) -> list[str]:
        if isinstance(system, ThreadedObject):
            system.receive(1, taken.append)
        assert system.do(Request(op="consume", ch=1, q="q", ctag="c")).ok
        kept[calls]("m0", 1)
        return [push.m for push in (*taken, *system.pushed())]

    assert consumed(0) == ["m0"]
    system.reset()
    taken.clear()
    assert consumed(0) == []
    kept[0]("m0", "no tag")
    assert consumed(1) == ["m0"]


def driven(command: str) -> tuple[DrivenRun, ChildProcess]:
    child = started(command)
    return drive(child, TAKE_AND_GIVE_BACK), child


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "kind"),
    [
        ("says-nothing", "silent"),
        ("says-half-a-line", "silent"),
        ("says-garbage", "garbage"),
        ("says-gigabytes", "flood"),
        ("dies", "died"),
        ("does-not-listen", "silent"),
    ],
)
def test_what_breaks_in_the_middle_ends_the_run_with_the_step_at_fault(
    mistake: str, kind: str
) -> None:
    begun = time.monotonic()
    run, child = driven(faulty(mistake))
    assert (run.fault, run.steps[-1].op) == (kind, "nack"), run.why
    assert time.monotonic() - begun < IN_TIME
    assert not marked(child.program.mark)


def test_who_answers_twice_is_said_to(program: Program) -> None:
    answer = "json.dumps({'id': json.loads(line)['id'], 'ok': True})"
    twice = f"for line in sys.stdin: print(*[{answer}] * 2, sep='\\n', flush=True)"
    child = started(program(hello(twice)))
    run = drive(child, [ScriptStep(op="publish", q="q", m="m0")])
    assert run.fault == "garbage"
    assert "once more" in run.why


def test_one_that_does_not_read_does_not_stop_us_from_writing(program: Program) -> None:
    child = started(program(hello("time.sleep(1e6)")))
    run = drive(child, [ScriptStep(op="publish", q="q" * 2**20, m="m0")])
    assert run.fault in ("silent", "deaf")
    assert not marked(child.program.mark)


def test_who_ignores_signals_and_forks_is_killed_with_all_offspring() -> None:
    child = started(faulty("will-not-end"))
    mark = child.program.mark
    run = drive(child, TAKE_AND_GIVE_BACK)
    assert not run.fault
    if Path("/proc/self/environ").exists():
        assert (
            len(marked(mark)) == 4
        )  # its supervisor, itself, a child, and one in a session of its own
    begun = time.monotonic()
    child.end()
    assert not marked(mark)
    assert time.monotonic() - begun < IN_TIME


HIDES = """
if not os.fork():
    os.setsid()
    if not os.fork():
        os.execve("/bin/sh", ["sh", "-c", f"trap '' TERM; echo $$ > {sys.argv[0]}.pid; while :; do sleep 1; done"], {})
    os._exit(0)
os.wait()
sys.stdin.read()
"""
"""Leaves a process that has no tie to it: an orphan, of its own session, with nothing in its environment."""


@pytest.mark.skipif(not SUPERVISED, reason="there is no subreaper here")
def test_who_hides_its_offspring_leaves_none(program: Program) -> None:
    command = program(hello(HIDES))
    child = started(command)
    note = Path(command.split()[-1] + ".pid")
    until = time.monotonic() + IN_TIME
    while not (note.exists() and note.read_text()) and time.monotonic() < until:
        time.sleep(0.01)
    orphan = int(note.read_text())
    assert os.getsid(orphan) not in (
        os.getsid(0),
        os.getsid(child.program.process.pid),
    )
    assert orphan not in marked(child.program.mark)
    child.end()
    with pytest.raises(ProcessLookupError):
        os.kill(orphan, 0)


@pytest.mark.skipif(not SUPERVISED, reason="there is no subreaper here")
def test_a_killed_driver_leaves_nobody(program: Program) -> None:
    """SIGKILL, which nobody can catch."""
    command = program(hello(HIDES))
    note = Path(command.split()[-1] + ".pid")
    drives = (
        f"from seriatim_models.conformance.child import ChildProcess as C; C({command!r}); input()"
    )
    driver = subprocess.Popen([sys.executable, "-c", drives], stdin=subprocess.PIPE)
    until = time.monotonic() + IN_TIME
    while not (note.exists() and note.read_text()) and time.monotonic() < until:
        time.sleep(0.01)
    orphan = int(note.read_text())
    driver.kill()
    driver.wait()
    assert driver.stdin is not None
    driver.stdin.close()
    while Path(f"/proc/{orphan}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(f"/proc/{orphan}").exists()


@pytest.mark.skipif(not SUPERVISED, reason="there is no subreaper here")
def test_nothing_is_run_for_a_driver_that_was_killed_before_its_supervisor_began() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    command = [
        str(gone.pid) if word == str(os.getpid()) else word
        for word in supervised(["sh", "-c", "echo run"])
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (127, b"")


def test_the_child_leaves_no_zombie() -> None:
    child = started(example())
    process = child.program.process
    child.end()
    child.end()
    assert process.returncode is not None
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)


def test_a_child_that_died_is_started_again_for_the_next_script() -> None:
    child = ChildProcess(faulty("dies"), patience=START)
    assert drive(child, TAKE_AND_GIVE_BACK).fault == "died"
    assert drive(child, TAKE_AND_GIVE_BACK[:2]).fault == ""
    child.end()


def test_names_that_look_like_paths_write_nothing_outside_the_output_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program
) -> None:
    source = """
import json, sys
for line in sys.stdin:
    r = json.loads(line)
    answer = {"id": r["id"], "ok": True}
    if r["op"] == "hello":
        answer |= {"protocol": "seriatim-conform/1", "name": "../../escaped", "can": ["publish", "get"]}
    if r["op"] == "get":
        answer["m"] = "../../escaped"
    print(json.dumps(answer), flush=True)
"""
    command = program(source)
    work = tmp_path / "deep" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    assert (
        run(["conform", "--exec", command, "--scripts", "3", "--seed", "1", "--out", "kept"]) == 1
    )
    written = {p.relative_to(tmp_path).parts[:3] for p in tmp_path.rglob("*") if p.is_file()}
    assert {parts[:1] for parts in written} == {("program",), ("deep",)}
    assert {parts for parts in written if parts[0] == "deep"} == {("deep", "work", "kept")}


@pytest.mark.slow
def test_a_search_among_faults_ends_in_time(program: Program, tmp_path: Path) -> None:
    begun = time.monotonic()
    command = program(hello("time.sleep(1e6)"))
    bounds = ["--patience", "1", "--scripts", "4", "--seed", "1", "--out", str(tmp_path)]
    assert run(["conform", "--exec", command, *bounds]) == 1
    assert time.monotonic() - begun < IN_TIME
