"""The help of every command and every topic fits into 80 columns."""

from __future__ import annotations

import pytest
import rich_click as click

from seriatim_models.cli import app, run
from seriatim_models.cli.help_page import TOPICS


def commands(group: click.Group, name: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command of the group and of the groups in it, hidden ones too, as what is typed."""
    found = [name]
    for word, command in group.commands.items():
        if isinstance(command, click.Group):
            found += commands(command, (*name, word))
        else:
            found.append((*name, word))
    return found


ASKED = [(*name, "--help") for name in commands(app)] + [("help", topic) for topic in TOPICS]


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_help_fits_into_80_columns(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(words) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) > 5
    assert [line for line in shown if len(line) > 80] == []
