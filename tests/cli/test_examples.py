"""What README and the help texts tell a reader to type is typed here."""

from __future__ import annotations

import gzip
import re
import shlex
from collections.abc import Iterator
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from seriatim_models.cli import app
from seriatim_models.conformance import profiles

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORDING = """\
{"schema": "qh/1", "run": "r", "rec": "me", "lvl": "api", "clk": "here"}
{"i": 1, "t": 10, "ev": "publish", "ph": "invoke", "conn": "c", "ch": 1, "q": "q", "m": "p:0", "pub": "p", "pseq": 0}
{"i": 2, "t": 20, "ev": "deliver", "conn": "d", "ch": 1, "q": "q", "m": "p:0", "ctag": "t", "dtag": 1}
"""


def examples() -> Iterator[str]:
    """Every line that begins with the command, without the explanation beside it."""
    helps = [command.epilog or "" for command in (app, *app.commands.values())]
    for text in (README, *helps):
        for line in re.findall(
            r"^\s*(?:\$ )?(seriatim (?:tour|check|audit|show|list|learn|help)\b.*)$",
            text,
            re.MULTILINE,
        ):
            yield re.split(r"\s{3,}|\s+#\s|\s\|\s", line)[0]


EXAMPLES = sorted(set(examples()))
REAL = re.compile(
    r"seriatim (learn(?! --html)|help|list \w+ \w|show (?!TOKEN|verdicts)|check \S+\.py::)"
)
"""Quick enough without the small world of fakes. The pages of all chapters are written by the tests of lessons."""


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 15


@pytest.mark.parametrize("command", EXAMPLES)
def test_what_is_told_can_be_typed(
    request: pytest.FixtureRequest,
    run: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    if not REAL.match(command):
        request.getfixturevalue("world")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recordings").mkdir()
    (tmp_path / "tests" / "data").mkdir(parents=True)
    for recording in (ROOT / "tests" / "data").glob("*.gz"):
        with (
            gzip.open(recording) as whole,
            gzip.open(tmp_path / "tests" / "data" / recording.name, "w") as begin,
        ):
            begin.writelines(islice(whole, 300))
    for file in (
        "recording.jsonl",
        "day.jsonl",
        "day.jsonl.zst",
        "recording.jsonl.gz",
        "run.jsonl.gz",
    ):
        (tmp_path / file).write_text(RECORDING)
    if not REAL.match(command):
        run("check", "--json", "verdicts.json")
    promised = resources.files(profiles).joinpath("strict-qpid.toml").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(promised.replace("strict-qpid", "mine"))
    own = (ROOT / "spec" / "own" / "refunds.py").read_text("utf-8")
    (tmp_path / "rules.py").write_text(own.replace("RefundAfterPayment", "Mine"))
    counts = (ROOT / "spec" / "own" / "test_counter.py").read_text("utf-8")
    (tmp_path / "spec" / "own").mkdir(parents=True)
    (tmp_path / "spec" / "own" / "test_counter.py").write_text(counts)
    (tmp_path / "test_pool.py").write_text(counts.replace("test_counter", "test_close"))
    if "--check" in command:
        (tmp_path / "mine.py").write_text("RUNS = WRONG = TRACES = 0")
    fakes = {"TOKEN": "s1-abc", "handover": "enqueue-consume", "two-takers": "enqueue-consume"}
    for real, fake in fakes.items():
        command = command.replace(real, fake)
    ran = run(*shlex.split(command)[1:])
    assert ran.code in {0, 1}, ran.err


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_the_readmes_python_runs(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "def test_" in block:
        assert block in (ROOT / "spec" / "own" / "test_counter.py").read_text(encoding="utf-8")
        return
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recording.jsonl").write_text(RECORDING)
    exec(block, {"__name__": "readme"})
    printed = capsys.readouterr().out
    assert "violated" in printed or "inconclusive" in printed
