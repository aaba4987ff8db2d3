"""The built wheel, installed as a user would: `make test-wheel`. Needs a package registry.

What an extra brings is missed in one sentence where it is not installed, and everything else works.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seriatim_models.extras import EXTRA_OF

from .conftest import ROOT, Environment

pytestmark = [pytest.mark.slow, pytest.mark.scale, pytest.mark.timeout(600)]

MEGABYTES = 25
"""The light core beside Python, as the files of the wheels; byte code, which pip writes, is as much again."""

RECORDING = ROOT / "tests" / "data" / "rabbit-classic-lockstep.jsonl.gz"

TEST = """
from seriatim_models.explorer import testing


def increments(world):
    counter = world.cell(0, name="counter")

    def work():
        counter.set(counter.get() + 1)

    world.spawn(work, name="a")
    world.spawn(work, name="b")
    world.at_end(lambda: None if counter.get() == 2 else f"counter is {counter.get()}")


def test_the_fixture(explorer):
    explorer(increments)


@testing.explored()
def test_the_decorator(world):
    increments(world)
"""

LACKING = (
    "audit recordings --engine spark",
    "generate made --events 100",
    "demo fair --svg fair.svg",
    "record --amqp amqp://127.0.0.1:1/ --out run.jsonl",
    "conform --amqp amqp://127.0.0.1:1/",
    "stream recordings --out streamed",
    "campaign two-takers --out searched",
    "matrix pull --depth 1 --campaign cells",
    "audit packed.jsonl.zst",
    "audit table.parquet",
)
"""Commands that need an extra."""

WORKING = (
    (0, "check two-takers"),
    (1, "check --mutant published-immediate --html race.html --json race.json"),
    (0, "audit recordings --junit verdicts.xml --html audit.html"),
    (0, "conform --python queue:Queue --seconds 2"),
    (0, "learn 1"),
    (0, f"lint recordings/{RECORDING.name}"),
    (0, "list programs"),
    (0, "explain IM-1"),
    (0, "matrix pull --depth 0"),
    (0, "help"),
    (0, "help pytest"),
)
"""Exit code and command that need none."""


@pytest.fixture(scope="module")
def light(environment: Callable[..., Environment]) -> Environment:
    made = environment()
    (made.work / "recordings").mkdir()
    shutil.copy(RECORDING, made.work / "recordings")
    (made.work / "packed.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"\0" * 8)
    (made.work / "table.parquet").write_bytes(b"PAR1" + b"\0" * 8 + b"PAR1")
    return made


def site(environment: Environment) -> Path:
    [folder] = environment.bin.parent.glob("lib/python*/site-packages")
    return folder


def test_the_core_brings_no_extra_and_is_light(environment: Callable[..., Environment]) -> None:
    made = environment()
    files = [path for path in site(made).rglob("*") if path.is_file()]
    top = {path.relative_to(site(made)).parts[0] for path in files}
    assert not top & EXTRA_OF.keys()
    of_python = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
    ours = [
        path
        for path in files
        if not path.relative_to(site(made)).parts[0].startswith(of_python) and path.suffix != ".pyc"
    ]
    size = sum(path.stat().st_size for path in ours) / 1e6
    assert 5 < size < MEGABYTES, f"{size:.1f} MB"
    print(f"the light core is {size:.1f} MB")


def test_a_counterexample_is_a_page_to_step_through(light: Environment) -> None:
    (light.work / "race.py").write_text(
        f"{TEST}\nfrom seriatim_models.explorer import explore\n"
        "print(explore(increments).counterexample.html())"
    )
    ran = light.run("python", "race.py")
    assert ran.returncode == 0, ran.stderr
    assert 'class="stepper"' in ran.stdout


@pytest.mark.parametrize(("code", "line"), WORKING)
def test_the_core_runs_what_needs_no_extra(light: Environment, code: int, line: str) -> None:
    ran = light.run("seriatim", *line.split())
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("line", LACKING)
def test_rejects_what_needs_an_extra_in_one_sentence(light: Environment, line: str) -> None:
    ran = light.run("seriatim", *line.split())
    assert ran.returncode == 2, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "fault of seriatim" not in ran.stderr
    _, named, said = ran.stderr.rpartition("\nseriatim: ")
    assert named or ran.stderr.startswith("seriatim: ")
    assert "pip install 'seriatim[" in " ".join(said.split())  # it may be folded


def test_the_pytest_plugin_and_the_reference_work_in_the_core(
    environment: Callable[..., Environment],
) -> None:
    light = environment(others=("pytest",))
    (light.work / "test_counter.py").write_text(TEST)
    ran = light.run("python", "-m", "pytest", "-q", "test_counter.py")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "2 failed" in ran.stdout
    assert ran.stdout.count("counter is 1") >= 2
    assert "--explore-replay" in ran.stdout
    imported = "import seriatim.queue, seriatim.client, seriatim.log, seriatim.fair, sys; print(sorted(sys.modules))"
    ran = light.run("python", "-c", imported)
    assert ran.returncode == 0, ran.stderr
    assert not EXTRA_OF.keys() & set(json.loads(ran.stdout.replace("'", '"')))


def test_with_the_extra_audit_the_verdicts_are_those_of_the_core(
    light: Environment, environment: Callable[..., Environment]
) -> None:
    full = environment("audit")
    verdicts = []
    for made in (light, full):
        ran = made.run("seriatim", "audit", str(RECORDING), "--json", "-")
        assert ran.returncode == 0, ran.stderr
        verdicts.append(
            [
                {key: row[key] for key in ("property", "verdict", "n_tested")}
                for row in json.loads(ran.stdout)["results"]
            ]
        )
    assert verdicts[0] == verdicts[1]
    assert verdicts[0]
    packing = (
        "from seriatim_models.history import Event, write_history, read_history;"
        "write_history('a.jsonl.zst', [Event(i=0, ev='publish', m='m')]);"
        "print(len(list(read_history('a.jsonl.zst').events)))"
    )
    ran = full.run("python", "-c", packing)
    assert ran.stdout.strip() == "1", ran.stderr
