"""What a person sees of a counterexample, to the letter; and that its token replays wherever it is pasted."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from seriatim_models.explorer import Violation, World, explore
from seriatim_models.explorer.trace import counterexample
from seriatim_workshop.litmus import MISTAKES, lost_wakeup

ROOT = Path(__file__).resolve().parents[2]

LOST = """\
lost wake-up: waiter waits on condition c, and nobody is left to notify it; waiter sleeps on c since step 7; the last
    notify, by setter in step 4 after flag.set(True) in step 2, found nobody waiting
in lost_wakeup, 7 steps with 1 preemption, end: lost wake-up

  | waiter              | setter
--+---------------------+---------------
1 | flag.get() -> False |
2 |                     | flag.set(True)
3 |                     | m.acquire()
4 |                     | c.notify(1)
5 |                     | m.release()
6 | m.acquire()         |
7 | c.wait()            |

replay: explore(program, Replay('sr1.fcaa2b4f.n1-0.cgEAAgYBAg.9310'))"""


def test_the_text_of_a_lost_wakeup() -> None:
    case = explore(lost_wakeup).counterexample
    assert case is not None
    assert "\n".join(line.rstrip() for line in case.text().splitlines()) == LOST


def pages(declared: bool) -> list[EntryPoint]:
    """The entry points that make pages: those of pyproject.toml, or none, as where nothing is installed."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    group = "seriatim.pages"
    return [EntryPoint(name, value, group) for name, value in points[group].items() if declared]


@pytest.mark.parametrize("declared", [True, False])
def test_the_page_needs_nothing_else_and_escapes_what_it_shows(
    monkeypatch: pytest.MonkeyPatch, declared: bool
) -> None:
    def program(world: World) -> None:
        x = world.cell("", name="<x>")
        world.spawn(lambda: x.set("<script>"), name="a&b")
        world.at_end(lambda: "IM-1: <wrong>")

    monkeypatch.setattr(counterexample, "entry_points", lambda **asked: pages(declared))
    case = explore(program).counterexample
    assert case is not None
    page = case.html()
    assert page.lstrip().startswith("<!doctype html>")
    assert "IM-1: &lt;wrong&gt;" in page
    assert "a&b" not in page.replace("a&amp;b", "").replace(r"a\u0026b", "")
    assert page.count("<script>") == (1 if declared else 0)
    assert ('class="stepper"' in page) == declared
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)", page)
    assert (case._repr_html_() in page) != declared


def test_a_look_that_found_none_says_so_and_a_value_is_shown_as_it_was() -> None:
    def program(world: World) -> None:
        nothing: list[int] | None = None
        seen: list[int] = []
        box = world.cell(nothing, name="box")

        def work() -> None:
            box.get()
            seen.append(1)
            box.set(seen)
            seen.append(2)
            box.get_and_set(None)

        world.spawn(work, name="a")
        world.at_end(lambda: "IM-1: wrong")

    case = explore(program).counterexample
    assert case is not None
    assert [str(step) for step in case.events] == [
        "box.get() -> None",
        "box.set([1])",
        "box.get_and_set(None) -> [1, 2]",
    ]
    assert repr(case).startswith("<Counterexample of program: IM-1: wrong; 3 steps, explore(")
    assert "\n" not in repr(case)


def test_a_livelock_is_shown_once_round() -> None:
    case = explore(MISTAKES["spinning"][0], max_steps=400).counterexample
    assert case is not None
    assert "steps are not shown" in case.text()
    assert len(case.text().splitlines()) < 40


def test_shrinking_prefers_fewer_preemptions_then_fewer_steps() -> None:
    def program(world: World) -> None:
        c = world.cell(0, name="c")
        noise = world.cell(0, name="noise")

        def work(k: int) -> None:
            if world.choose(2) == 1:
                noise.get()
                noise.get()
            c.set(c.get() + 1)
            noise.set(k)

        for k in range(3):
            world.spawn(lambda k=k: work(k))  # type: ignore[misc]
        world.at_end(lambda: None if c.get() == 3 else "SO-1: an increment was lost")

    case = explore(program).counterexample
    assert case is not None
    assert case.preemptions == 1
    assert len(case.events) == 12
    assert case.violations == [Violation("property", "SO-1: an increment was lost")]


def test_a_notebook_shows_a_result_and_its_counterexample_and_no_style_beyond() -> None:
    def lost(world: World) -> None:
        c = world.cell(0, name="<c>")
        for _ in range(2):
            world.spawn(lambda: c.set(c.get() + 1))
        world.at_end(lambda: None if c.get() == 2 else "an increment was lost")

    result = explore(lost)
    case = result.counterexample
    assert case is not None
    assert repr(result).splitlines() == [
        f"<Result of lost: violated, {result.executions} executions, Replay({case.token!r})>"
    ]
    fragment = result._repr_html_()
    assert "an increment was lost" in fragment
    assert case.token in fragment
    assert "&lt;c&gt;.get()" in fragment
    assert "<c>" not in fragment
    [style] = re.findall(r"<style>(.*?)</style>", fragment)
    assert all(
        rule.startswith(".seriatim ")
        for rules in re.findall(r"([^{}]+)\{", style)
        for rule in rules.split(",")
    ), "a rule without the class would be the whole notebook's"
    right = explore(lambda world: world.spawn(world.cell(0, name="c").get), name="right")
    assert repr(right) == "<Result of right: ok, 1 executions>"
    assert "seriatim" not in right._repr_html_()


@pytest.mark.slow
def test_a_token_replays_in_pytest(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(
        "from seriatim_models.explorer.testing import explored\n"
        "@explored()\n"
        "def test_lost(world):\n"
        "    c = world.cell(0, name='c')\n"
        "    for _ in range(2):\n"
        "        world.spawn(lambda: c.set(c.get() + 1))\n"
        "    world.at_end(lambda: None if c.get() == 2 else 'an increment was lost')\n"
        "@explored()\n"
        "def test_fine(world):\n"
        "    world.spawn(world.cell(0, name='c').get)\n"
    )

    def ended(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(file),
            ],
            capture_output=True, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip

    def run(*options: str) -> str:
        return ended(*options).stdout

    said = run()
    assert "1 failed, 1 passed" in said
    token = next(w for w in said.split() if w.startswith("sr1."))
    again = run("--explore-replay", token)
    assert "1 failed, 1 skipped" in again
    assert "an increment was lost" in again
    nothing = ended("--explore-replay", token, "-k", "fine")
    assert "1 skipped" in nothing.stdout
    assert nothing.returncode == 1, "a token of no test is no success"
    assert "the token of --explore-replay is of no test that was run" in nothing.stderr
