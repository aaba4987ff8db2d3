"""The wheel, built once from this checkout, and environments into which it is installed."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    [path] = folder.glob("*.whl")
    return path


class Environment:
    """A virtual environment that sees nothing of this checkout."""

    def __init__(self, folder: Path, *requirements: str) -> None:
        self.bin = folder / "bin"
        self.work = folder / "work"
        venv.create(folder, with_pip=True, symlinks=True)
        self.work.mkdir()
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
        subprocess.run([self.bin / "python", *install], check=True, timeout=300)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment in a folder of its own."""
        return subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.work,
            env={"PATH": f"{self.bin}:/usr/bin:/bin", "COLUMNS": "80", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture(scope="session")
def environment(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Environment]:
    """`environment("audit", others=["pytest"])`: the wheel with extras, and other packages beside it."""

    def make(*extras: str, others: tuple[str, ...] = ()) -> Environment:
        chosen = f"[{','.join(extras)}]" if extras else ""
        folder = tmp_path_factory.mktemp("environment")
        return Environment(folder, f"{wheel}{chosen}", *others)

    return make
