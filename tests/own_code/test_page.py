"""The page `spec/OWN_CODE.md`: its example is what the command says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seriatim_models.cli import run

PAGE = Path(__file__).resolve().parents[2] / "spec" / "OWN_CODE.md"


def test_the_example_is_found_as_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (_, program), (_, console) = blocks[:2]
    monkeypatch.chdir(tmp_path)
    Path("test_counter.py").write_text(program)
    command, *said = console.strip().splitlines()
    assert run(command.removeprefix("$ seriatim ").split()) == 1
    shown = capsys.readouterr().out
    for line in said[:2]:
        assert line in shown
