"""A user's file is run as it is now, whatever Python's caches say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seriatim_models.source_files import unloaded_module


def value(path: Path) -> object:
    module, loader = unloaded_module(path, "mine")
    loader.exec_module(module)
    return module.VALUE


def test_two_versions_of_one_size_and_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Caches go by both."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    path = tmp_path / "mine.py"
    for number in (1, 2):
        path.write_text(f"VALUE = {number}", encoding="utf-8")
        os.utime(path, (1_000_000_000, 1_000_000_000))
        assert value(path) == number
    assert [p.name for p in tmp_path.iterdir()] == ["mine.py"], "nothing is left beside it"


def test_a_mistake_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("VALUE = 1\n)", encoding="utf-8")
    with pytest.raises(SyntaxError, match=r"mine\.py, line 2"):
        value(path)
