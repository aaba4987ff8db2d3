"""The page `spec/OWN_CODE.md`: its example is what the command says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seriatim_models.cli import run

pytest_plugins = ["pytester"]
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


def test_the_drawn_example_is_found_by_pytest(pytester: pytest.Pytester) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    [drawn] = [block for block in blocks if "@given" in block]
    pytester.makepyfile(test_counter=f"{blocks[0]}\n{drawn}")
    ran = pytester.runpytest_subprocess("-k", "as_many", "-p", "no:cacheprovider", "-p", "no:xdist")
    ran.assert_outcomes(failed=1, deselected=1)
    ran.stdout.fnmatch_lines(["*racing pair: Counter.value*", "*calls=2*"])
    assert "--explore-replay" in ran.stdout.str()
