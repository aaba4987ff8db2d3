"""A command, a signal and an instant are drawn: it ends by a declared code, in a word, with whole files and no orphan.

`SERIATIM_SIGNALS=200 pytest tests/cli/test_signals.py` draws more, and names each draw that fails.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seriatim_models.supervisor import SUPERVISED
from seriatim_workshop.fuzz_surroundings import half_files, left_of

DATA = Path(__file__).parent.parent / "data"
EXAMPLE = f"{sys.executable} {Path(__file__).parents[2] / 'spec/conform/example.py'}"
CLIENTS = f"{sys.executable} {Path(__file__).parents[2] / 'spec/conform/clients.py'}"
RECORDING = str(DATA / "rabbit-classic-competing.jsonl.gz")
CONFORMANCE = Path(__file__).parents[1] / "conformance"
SPARK = {
    "audit": ["audit", RECORDING, "--engine", "spark", "--out", "OUT/tables"],
    "stream": ["stream", str(DATA), "--out", "OUT/stream", "--idle", "600"],
    "campaign": ["campaign", "consumer-priorities", "--exhaustive", "--out", "OUT/campaign"],
}
ENDURE = ["-m", "seriatim_workshop.endure", "--rate", "1000", "--out", "OUT/endure"]
BEGIN = "import seriatim_models.start as s; print(flush=True); s.main()"
OF_MAKE = "import sys; sys.argv[0] = '-m'; import runpy, seriatim_workshop; print(flush=True); "
OF_MAKE += (
    "runpy.run_module('seriatim_workshop.' + sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
"""As `python -m seriatim_workshop.NAME` does it, with a line when a signal is heard."""
DRAWS = int(os.environ.get("SERIATIM_SIGNALS", "12"))
COMMANDS: dict[str, list[str]] = {
    "audit": ["audit", RECORDING, "--engine", "local", "--json", "OUT/a.json", "--html", "OUT/a.html"],
    "audit with tables": ["audit", RECORDING, "--engine", "local", "--out", "OUT/tables"],
    "lint": ["lint", RECORDING, "--json", "OUT/a.json"],
    "show": ["show", RECORDING, "--timeline", "OUT/a.html"],
    "check": ["check", "two-takers", "--strategy", "random", "--budget", "5", "--json", "OUT/a.json"],
    "check in processes": ["check", "two-takers", "queue-again", "--jobs", "2", "--html", "OUT/a.html"],
    "generate": ["generate", "OUT/made", "--events", "100000"],
    "conform": ["conform", "--exec", EXAMPLE, "--seconds", "5", "--out", "OUT/c", "--json", "OUT/a.json"],
    "conform clients": ["conform", "--exec", CLIENTS, "--clients", "3", "--seconds", "5", "--out", "OUT/c"],
    "conform python": ["conform", "--python", "queue:Queue", "--seconds", "5", "--out", "OUT/c"],
    "record": ["record", "--exec", CLIENTS, "--clients", "3", "--seconds", "5", "--out", "OUT/r.jsonl"],
    "record under faults": [
        "record", "--system", "OUT/planted.toml", "--setting", "before", "--faults", "kill,pause,cut",
        "--python", "planted_client:PlantedClient", "--seconds", "5", "--out", "OUT/f.jsonl",
    ],
    "matrix": ["matrix", "pool", "--depth", "1", "--jobs", "2", "--json", "OUT/a.json"],
    "vectors": ["vectors", "fill", "--folder", "OUT/vectors"],
    "tour": ["tour", "--out", "OUT/tour"],
    "bugs": ["bugs", "--out", "OUT/bugs"],
    "demo": ["demo"],
}  # fmt: skip
PLANTED = f"""
format = "seriatim-system/1"
id = "planted"
title = "a queue with a log"
origin = "this folder"
reach = "127.0.0.1:{{port}}"
start = ["{sys.executable}", "{CONFORMANCE / "planted_server.py"}", "{{port}}", "{{data}}"]

[setting.before]
options = ["before"]
survives = ["kill", "pause", "cut"]
settled = ["kill"]
"""
ENVIRONMENT = {"PYTHONPATH": os.pathsep.join([*sys.path, str(CONFORMANCE)])}
COMMANDS_OF_MAKE: dict[str, list[str]] = {
    "soak": ["soak", "20"],
    "chaos": ["systems.chaos", "beanstalkd/memory", "--out", "OUT/chaos"],
    "conform": ["systems.run", "queue.Queue", "--seconds", "10", "--out", "OUT/c", "--table", "OUT/s.md"],
    "planted": ["planted.run", "--seeds", "1", "--out", "OUT/planted", "--table", "OUT/p.md"],
    "right": ["right", "--n", "200"],
}  # fmt: skip
"""What `make` runs, without the command line."""
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: 137}
"""As a shell sees them: also where it is the signal itself that ends it, while it is loaded or unloaded."""


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system has no /proc")
@pytest.mark.parametrize("draw", range(DRAWS))
def test_whenever_a_signal_comes_a_command_ends_as_declared(draw: int, tmp_path: Path) -> None:
    drawn = random.Random(draw)
    what = drawn.choice(sorted(COMMANDS))
    ends_as_declared(drawn, what, [sys.executable, "-c", BEGIN, *COMMANDS[what]], tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.skipif(not SUPERVISED, reason="there is no subreaper here")
@pytest.mark.parametrize("draw", range(DRAWS // 2))
@pytest.mark.parametrize("what", COMMANDS_OF_MAKE)
def test_whenever_signals_come_what_make_runs_ends_as_declared(
    what: str, draw: int, tmp_path: Path
) -> None:
    if what == "chaos" and shutil.which("beanstalkd") is None:
        pytest.skip("beanstalkd is not installed here, and chaos would do that")
    words = [sys.executable, "-c", OF_MAKE, *COMMANDS_OF_MAKE[what]]
    ends_as_declared(random.Random(f"{what}/{draw}"), what, words, tmp_path)


def ends_as_declared(drawn: random.Random, what: str, words: list[str], folder: Path) -> None:
    """Run a command and send it a signal at a drawn moment, and maybe some more while it is ending."""
    numbers = [drawn.choice(sorted(CODES))]
    after = drawn.choice((drawn.uniform(0.05, 0.5), drawn.uniform(0.05, 6)))
    numbers += drawn.choices(sorted(CODES)[:2], k=drawn.choice((0, 0, 1, 3)))
    pauses = [drawn.choice((0.0, drawn.uniform(0, 0.5))) for _ in numbers]
    mark = f"SERIATIM_DRAW={os.getpid()}-{drawn.random()}"
    (folder / "planted.toml").write_text(PLANTED, encoding="utf-8")
    with subprocess.Popen(
        [word.replace("OUT", str(folder), 1) if word.startswith("OUT") else word for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "SERIATIM_DRAW": mark.split("=")[1], **ENVIRONMENT},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=after)
            over = process.poll() is not None
            began = time.monotonic()
            for number, pause in zip(numbers, pauses, strict=True):
                process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(pause)
            _, errors = process.communicate(timeout=60)
            took = time.monotonic() - began
        finally:
            process.kill()
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    case = f"{what}: {', '.join(number.name for number in numbers)} after {after:.2f} s"
    assert "Traceback" not in errors, f"{case}\n{errors}"
    assert over or code in ({CODES[n] for n in numbers} | {0, 1, 2, 3}), f"{case}: {code}\n{errors}"
    assert took < 20, f"{case}: ended after {took:.0f} s"
    assert half_files(folder) == [], case
    left = left_of(mark, 10)
    assert left == [], f"{case}: {left}"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(
    300
)  # a batch that is under way is ended first; a busy machine takes a minute for it
@pytest.mark.skipif(not SUPERVISED, reason="there is no subreaper here")
@pytest.mark.parametrize("number", sorted(CODES))
@pytest.mark.parametrize("what", [*SPARK, "endure"])
def test_nothing_is_left_of_what_starts_java(
    what: str, number: signal.Signals, tmp_path: Path
) -> None:
    """While Java begins, while Spark does, and at work: the instant is drawn."""
    after = random.Random(f"{what} {number} {os.environ.get('SERIATIM_SIGNALS')}").uniform(1, 20)
    mark = f"SERIATIM_DRAW={os.getpid()}-{what}-{number}"
    begin = ENDURE if what == "endure" else ["-c", BEGIN, *SPARK[what]]
    with (
        (tmp_path / "said").open("wb") as said,
        subprocess.Popen(
            [sys.executable, *(a.replace("OUT", str(tmp_path), 1) for a in begin)],
            stdout=said,
            stderr=said,
            env={**os.environ, "SERIATIM_DRAW": mark.split("=")[1]},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process,
    ):
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after)
            process.send_signal(number)
            code = process.wait(180)
        finally:
            process.kill()
    case = f"{what}: {number.name} after {after:.2f} s"
    left = left_of(mark, 20)
    assert left == [], f"{case}: {left}"
    errors = (tmp_path / "said").read_text(encoding="utf-8", errors="replace")
    if what != "endure":  # not a command of the package: Python says what it says
        assert "Traceback" not in errors, f"{case}\n{errors}"
    assert code in (number.value * -1, CODES[number], 0, 1, 3), f"{case}: {code}\n{errors}"


def test_a_signal_that_comes_in_what_the_interpreter_calls_by_itself_is_not_lost() -> None:
    """Found in `make soak`: Hypothesis has a callback of the garbage collector."""
    text = (
        "from seriatim_models.ending import end_in_a_word\n"
        "import gc, os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "end_in_a_word()\n"
        "gc.callbacks.append(lambda *_: os.kill(os.getpid(), signal.SIGINT))\n"
        "gc.collect()\n"
        "sys.exit('went on')\n"
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "seriatim: interrupted\n")
