"""The chapters, and a folder in which what they write lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_models.cli import lesson_runner
from seriatim_models.report.lessons import Lesson
from seriatim_models.report.story import Story

from ..cli.conftest import run as run

ROOT = Path(__file__).resolve().parents[2]


STORIES: dict[str, dict[int, Story]] = {}


@pytest.fixture(autouse=True)
def stories(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs of a chapter are explored once, however many tests draw them."""
    explored = lesson_runner.stories

    def kept(lesson: Lesson) -> dict[int, Story]:
        if lesson.name not in STORIES:
            STORIES[lesson.name] = explored(lesson)
        return STORIES[lesson.name]

    monkeypatch.setattr(lesson_runner, "stories", kept)


@pytest.fixture(autouse=True)
def states(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a learner has done is kept where nobody's home is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("states")))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with nothing of the checkout in it but the recordings."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "data").symlink_to(ROOT / "tests" / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path
