"""A property that comes in a wheel, as another package would offer it: by the name of an entry point."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from seriatim_models.history import Event, write_history

RULE = '''
from seriatim_models.properties.base import WholeHistory


class NoRush(WholeHistory):
    """A case is a delivery."""

    id = "RUSH"
    sentence = "Nothing is delivered before the third event."
    source = "a test"
    kind = "safety"
    reads = frozenset({"deliver"})

    def cases(self, events, bad):
        given = [e for e in events if e.ev == "deliver"]
        bad += [(f"{e.m} came early", [e]) for e in given if e.i < 2]
        return len(given)
'''


def wheel(folder: Path) -> Path:
    """A wheel with one module and one entry point, as the specification of the format has it."""
    path = folder / "norush-1.0-py3-none-any.whl"
    info = "norush-1.0.dist-info"
    files = {
        "norush.py": RULE,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: norush\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[seriatim.properties]\nno-rush = norush:NoRush\n",
    }
    record = "".join(f"{name},,\n" for name in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (files | {f"{info}/RECORD": record}).items():
            archive.writestr(name, text)
    return path


def test_a_property_of_an_installed_wheel_is_judged_by_its_name(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([sys.executable, *install, str(wheel(tmp_path))], check=True, timeout=60)
    recording = tmp_path / "run.jsonl"
    events = [Event(i=0, t=0, ev="publish", m="m0"), Event(i=1, t=1, ev="deliver", m="m0")]
    write_history(recording, events)
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    asked = ["audit", str(recording), "--property", "no-rush", "--json", "-"]
    ran = subprocess.run(
        [sys.executable, "-c", "from seriatim_models.cli import main; main()", *asked],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 1, ran.stderr
    assert "m0 came early" in ran.stdout
