"""The command as a process of its own, over the real programs: what only shows from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("seriatim"))


def seriatim(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "NO_COLOR"}}
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=plain | environment,
    )


def test_the_published_race_is_found_and_replayed() -> None:
    ran = seriatim("check", "--mutant", "published-immediate", "--json", "-")
    assert ran.returncode == 1
    (run,) = json.loads(ran.stdout)["programs"]
    assert run["counterexample"]["steps"] <= 13
    assert "IM-1" in run["counterexample"]["text"]
    shown = seriatim("show", run["counterexample"]["token"])
    assert shown.returncode == 1
    assert "IM-1" in shown.stdout


def test_the_repair_holds_under_every_schedule() -> None:
    ran = seriatim("check", "immediate-race", "--json", "-")
    assert ran.returncode == 0
    (run,) = json.loads(ran.stdout)["programs"]
    assert run["exhausted"] is True


def test_two_processes_find_what_one_does() -> None:
    programs = ("immediate-race", "expiring")
    one = json.loads(seriatim("check", *programs, "--jobs", "1", "--json", "-").stdout)
    two = json.loads(seriatim("check", *programs, "--jobs", "2", "--json", "-").stdout)
    assert one["results"] == two["results"]
    assert [run["traces"] for run in one["programs"]] == [run["traces"] for run in two["programs"]]


def test_colours_are_for_those_who_want_them() -> None:
    arguments = ("check", "immediate-race", "--jobs", "1")
    assert "\x1b[" not in seriatim(*arguments).stdout
    assert "\x1b[32m" in seriatim(*arguments, FORCE_COLOR="1").stdout
    assert "\x1b[32m" not in seriatim(*arguments, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_who_stops_reading_hears_no_complaint() -> None:
    done = subprocess.run(
        f"{COMMAND} list properties | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""


def test_help_starts_without_what_is_slow() -> None:
    code = "import sys, seriatim_models.cli; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    for slow in ("pyspark", "pandas", "matplotlib", "numpy", "greenlet"):
        assert slow not in loaded


def test_the_shell_completes_names() -> None:
    ran = seriatim(
        _SERIATIM_COMPLETE="bash_complete", COMP_WORDS="seriatim check immediate-", COMP_CWORD="2"
    )
    assert "plain,immediate-race" in ran.stdout.split()
