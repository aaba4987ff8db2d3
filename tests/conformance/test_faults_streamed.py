"""A stream judges a run while its system is killed again and again, and is killed itself; then an audit agrees."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seriatim_models.cli import run

from .test_faults import HERE, written

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900)]


def begin(module: str, *words: str) -> subprocess.Popen[bytes]:
    """A command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        cwd=HERE,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def verdicts(path: Path) -> dict[str, str]:
    """Property and verdict of a file that `--json` wrote."""
    found = json.loads(path.read_text())["results"]
    return {f["property"]: f["verdict"] for f in found}


@pytest.mark.parametrize("setting", ["later", "before"])
def test_a_stream_killed_beside_a_system_that_is_killed(setting: str, tmp_path: Path) -> None:
    parts, out = tmp_path / "parts", tmp_path / "out"
    parts.mkdir()
    planted = ["--system", written(tmp_path), "--setting", setting, "--faults", "kill"]
    planted += ["--python", "planted_client:PlantedClient", "--rate", "100", "--seconds", "25"]
    recorder = begin(
        "seriatim_models.cli.submit", "record", *planted, "--out", str(parts), "--parts", "1"
    )
    words = [
        "stream",
        str(parts),
        "--out",
        str(out),
        "--profile",
        "amqp-0-9-1-4.7",
        "--every",
        "0.5",
    ]
    kills = 0
    while recorder.poll() is None:
        stream = begin("seriatim_models.cli.submit", *words)
        with contextlib.suppress(subprocess.TimeoutExpired):
            recorder.wait(12)
        os.killpg(stream.pid, signal.SIGKILL)
        stream.wait()
        kills += 1
        time.sleep(0.1)
    assert recorder.returncode == 0
    assert kills >= 2
    assert len(list(parts.glob("*.jsonl"))) > 5
    assert not list(parts.glob(".*")), "a part was left behind that is not whole"
    streamed, whole = tmp_path / "streamed.json", tmp_path / "whole.json"
    code = 1 if setting == "later" else 0
    assert run([*words, "--once", "--json", str(streamed)]) == code
    audited = ["audit", str(parts), "--profile", "amqp-0-9-1-4.7", "--engine", "local"]
    assert run([*audited, "--json", str(whole)]) == code
    assert verdicts(streamed) == verdicts(whole)
