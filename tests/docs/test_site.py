"""The documentation site and the workflows: what they tell a reader to type is there, and every block of code is run.

`make docs` builds the site, with each warning an error, and checks its links.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from seriatim_models.cli import app, lesson_runner
from seriatim_models.cli import run as run_command
from seriatim_models.report import lessons
from seriatim_workshop.site_links import broken

ROOT = Path(__file__).resolve().parents[2]
GUIDE = sorted((ROOT / "spec" / "guide").glob("*.md"))
PAGES = sorted(
    path
    for path in (
        ROOT / "README.md",
        ROOT / ".github" / "CONTRIBUTING.md",
        *(ROOT / "spec").rglob("*.md"),
    )
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

RUN_BY = {
    "README.md": "tests/cli/test_readme.py",
    ".github/CONTRIBUTING.md": "tests/contributing/test_recipes.py",
    "spec/OWN_PROPERTIES.md": "tests/contributing/test_recipes.py",
    "spec/HISTORY.md": "tests/history/test_importers.py",
    "spec/OWN_CODE.md": "tests/own_code/test_page.py",
    "spec/guide/*.md": "tests/docs/test_site.py",
    "spec/lessons/*.md": "tests/lessons/test_lessons.py",
}
"""Which test runs the blocks of a page."""

NOT_RUN = {
    ("spec/OWN_CODE.md", "$ seriatim conform --python queue:Queue --schedules"): "a minute; options are read here",
    ("spec/MATRIX.md", "$ seriatim matrix pull --depth 2"): "minutes; options are read here",
    ("spec/MUTATION.md", "$ make mutants "): "hours; targets are looked up here",
    ("spec/MUTATION.md", "$ make mutants-order "): "hours; targets are looked up here",
    ("spec/conform/README.md", "$ seriatim record --exec"): "so tests/conformance/test_clients_commands.py does it",
    ("spec/conform/README.md", "$ seriatim conform --exec"): "a minute each; options are read here",
    ("spec/conform/README.md", "$ seriatim conform --amqp"): "so tests/conformance/test_amqp_clients.py does it",
    ("spec/conform/README.md", "$ seriatim record --system"): "so tests/conformance/test_faults.py does it",
    ("spec/conform/README.md", "from seriatim_models.conformance.testing"): "tests/conformance/test_base_class.py",
    ("spec/HISTORY.md", 'format = "seriatim-profile/1"'): "all keys in one file, which is no whole profile",
}  # fmt: skip
"""Page and beginning of a block that no test runs, and why."""

WRITTEN_FIRST = ("seriatim learn 1 --check",)
ABOUT = re.compile(r"amqp://")


def relative(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def commands(pages: list[Path]) -> list[str]:
    """What the console blocks of some pages tell the reader to type."""
    return [
        re.split(r"\s+#\s", line)[0].strip()
        for page in pages
        for kind, body in BLOCK.findall(page.read_text("utf-8"))
        if kind == "console"
        for line in re.findall(r"^\$ (.*)$", body, re.MULTILINE)
    ]


def options_are_there(words: list[str]) -> None:
    """Raises `click.UsageError` if not."""
    group: click.Command = app
    while isinstance(group, click.Group):
        group = group.commands[words.pop(0)]
    with contextlib.suppress(click.MissingParameter):
        group.make_context("seriatim", words)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like the checkout, in which what the commands write does no harm."""
    for name in ("tests", "spec"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in commands(GUIDE) if not ABOUT.search(c)])
def test_a_command_of_the_guide_does_what_is_said(
    checkout: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, *words = shlex.split(command)
    if program == "pytest":
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
            cwd=ROOT,
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return
    assert program == "seriatim"
    if command.startswith(WRITTEN_FIRST):
        Path("mine.py").write_text(lessons.all_in(lesson_runner.folder())[0].start)
    wrong = "published-" in command or "--check" in command or "test_counter" in command
    assert run_command(words) in ({1} if wrong and words[0] != "bugs" else {0, 3})
    for option in ("--html", "--svg", "--junit", "--start"):
        if option in words:
            assert Path(words[words.index(option) + 1]).stat().st_size > 0


def test_what_is_typed_elsewhere_has_these_options_and_targets() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    typed = commands(PAGES)
    assert len(typed) > 60
    for command in typed:
        for part in command.split(" && "):
            program, *words = shlex.split(part)
            if program == "make":
                assert words[0] in targets, part
            elif program == "seriatim":
                options_are_there(words)


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_block_of_code_is_run_or_says_why_not(page: Path) -> None:
    runner = next((t for pattern, t in RUN_BY.items() if fnmatch(relative(page), pattern)), None)
    excused = {start for name, start in NOT_RUN if name == relative(page)}
    for kind, body in BLOCK.findall(page.read_text("utf-8")):
        if kind in ("text", "bibtex"):
            continue
        reason = {start for start in excused if body.startswith(start)}
        excused -= reason
        assert reason or runner is not None, (
            f"{relative(page)}: no test runs the block that begins {body.splitlines()[0]!r}: "
            "add one, or a reason to NOT_RUN"
        )
    assert not excused, f"{excused}: {relative(page)} has no such block any more"
    if runner is not None:
        assert (ROOT / runner).is_file()


def steps(workflow: Path) -> list[dict[str, Any]]:
    read = yaml.safe_load(workflow.read_text("utf-8"))
    assert read[True], "on which events it runs (YAML reads the key `on` as true)"
    return [step for job in read["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("name", ["workflows/ci.yml", "examples/seriatim.yml"])
def test_a_workflow_types_what_there_is(name: str) -> None:
    typed = [step["run"] for step in steps(ROOT / ".github" / name) if "run" in step]
    assert len(typed) >= 4
    makefile = (ROOT / "Makefile").read_text("utf-8")
    extras = set(re.findall(r"^([a-z]+) = \[", (ROOT / "pyproject.toml").read_text("utf-8"), re.M))
    for line in typed:
        for command in line.replace("\\\n", " ").split(" || ")[:1]:
            program, *words = shlex.split(command)
            if program == "make":
                assert re.search(rf"^{words[0]}:", makefile, re.MULTILINE), command
            elif program == "seriatim":
                options_are_there(words)
            elif program == "pip":
                asked = re.findall(r"seriatim\[(.*?)\]", line)
                assert asked
                assert set(asked[0].split(",")) <= extras
            elif program == "pytest":
                assert {"--explore", "--explore-seconds"} <= set(words)
            else:
                assert (program, *words) == ("sudo", ".ci/run")


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a><a href="#mine"></a><p id="mine">')
    (tmp_path / "b.html").write_text('<p id="here"><img src="no.png"><a href="a.html#gone">a</a>')
    assert broken(tmp_path) == [
        "b.html: no.png: there is no such file",
        "b.html: a.html#gone: there is no such element",
    ]
