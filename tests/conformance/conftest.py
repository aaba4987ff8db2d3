"""Programs that speak the protocol, rightly and wrongly, and the processes that they leave."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec" / "conform"


def example() -> str:
    """The command of the right example."""
    return shlex.join([sys.executable, str(SPEC / "example.py")])


def faulty(mistake: str) -> str:
    """The command of the example with a mistake."""
    return shlex.join([sys.executable, str(SPEC / "faulty.py"), mistake])


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Writes a program of Python and gives the command that runs it."""

    def written(source: str) -> str:
        path = tmp_path / "program" / "implementation.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source, encoding="utf-8")
        return shlex.join([sys.executable, "-u", str(path)])

    return written
