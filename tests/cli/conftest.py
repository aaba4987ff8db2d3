"""A small world for the command line: two programs, two mutants, and an explorer that knows the answers.

The commands are what is tested here; the real programs have tests of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from seriatim_models import cli, explorer, pipeline, programs, properties
from seriatim_models.cli import counterexample_annotation, lesson_runner
from seriatim_models.conformance import profiles
from seriatim_models.explorer.trace.counterexample import Step
from seriatim_models.history import Event, HistoryError
from seriatim_models.matrix import plan  # noqa: F401  # with the real explorer, before it is replaced
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.programs import fair_simulation
from seriatim_models.properties import blackbox
from seriatim_models.properties.base import Finding, Verdict


@dataclass(frozen=True)
class FakeProgram:
    id: str
    title: str = "one thread meets another"
    reference: str = "queue"
    properties: tuple[str, ...] = ("SO-1",)
    beyond: str = "two threads; a third is beyond"


@dataclass(frozen=True)
class FakeMutant:
    id: str
    killed_by: str
    program: str
    reference: str = "queue"
    origin: str = "a seed"
    title: str = "the check is not atomic"
    edits: tuple[tuple[str, str], ...] = (("right()", "wrong()"),)
    steps: int = 3


@dataclass(frozen=True)
class FakeCounterexample:
    token: str = "s1-abc"
    program: str = "enqueue-consume"
    events: tuple[Step, ...] = (
        Step(1, "a", "x.get()", "", False, ()),
        Step(2, "b", "x.set(<b>1</b>)", "", False, ()),
        Step(3, "a", "x.get()", "<b>1</b>", False, ()),
    )
    violations: tuple[str, ...] = ("SO-1: x came before y",)
    end: str = "finished"
    threads: tuple[str, ...] = ("a", "b")
    records: tuple[object, ...] = ()
    period: int = 0
    replay: str = "seriatim check --replay s1-abc"

    def text(self) -> str:
        return "a        | b\nget x    |\n         | set x <b>1</b>\n"


@dataclass
class World:
    """What the fakes shall find."""

    violated: set[str] = field(default_factory=set)
    """Ids of mutants that are noticed, and of programs that break."""
    inconclusive: set[str] = field(default_factory=set)
    audit: dict[str, str] = field(default_factory=lambda: {"ES-5": "ok"})
    quarantine: int = 0
    asked: list[dict[str, object]] = field(default_factory=list)


def _check(world: World) -> Callable[..., SimpleNamespace]:
    def check_program(
        program: FakeProgram, mutant: FakeMutant | None = None, **how: object
    ) -> SimpleNamespace:
        world.asked.append({"program": program.id, "mutant": mutant and mutant.id, **how})
        on_progress = how.get("on_progress")
        assert callable(on_progress)
        on_progress(explorer.Progress(7, 0.1, explorer.Estimate(12, 1, 20, 5, 0)))
        broken = program.id in world.violated or (
            mutant is not None and mutant.id in world.violated
        )
        verdict = (
            "violated" if broken else "inconclusive" if program.id in world.inconclusive else "ok"
        )
        finding = Finding.of(
            "SO-1", 4, [("x came before y", [Event(i=1, ev="deliver", m="x")])] if broken else ()
        )
        return SimpleNamespace(
            program=program,
            mutant=mutant,
            findings=[finding],
            explored=SimpleNamespace(
                verdict=verdict,
                exhausted=verdict == "ok",
                traces=12,
                complete=12,
                blocked=0,
                why="Something broke." if broken else "",
                bounds={"max_steps": 5000, "seconds": None},
                split="2 processes shared the search" if how["jobs"] == 2 else None,
                counterexample=FakeCounterexample() if broken else None,
            ),
            seconds=0.25,
        )

    return check_program


def _audit(world: World) -> Callable[..., SimpleNamespace]:
    def audit_paths(
        paths: list[str],
        engine: str,
        properties: object,
        out: str | None,
        *spark: object,
        alone: bool,
        jobs: int,
    ) -> SimpleNamespace:
        if missing := [path for path in paths if not Path(path).exists()]:
            raise HistoryError(f"{missing[0]}: cannot be read: no such file or folder")
        world.asked.append({"paths": paths, "engine": engine, "out": out})
        findings = [
            Finding(
                property=id,
                verdict=Verdict(verdict),
                n_tested=0 if verdict == "inconclusive" else 5,
            )
            for id, verdict in world.audit.items()
        ]
        lines = [
            SimpleNamespace(source="h.jsonl", line=n + 1, reason="no JSON")
            for n in range(world.quarantine)
        ]
        return SimpleNamespace(
            findings=findings, quarantine=lines, statistics={"events": 1234, "rejected": len(lines)}
        )

    return audit_paths


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """The fakes in place of the real programs, properties and pipeline."""
    made = World()
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # other processes would not see the fakes
    found = {p.id: p for p in (FakeProgram("enqueue-enqueue"), FakeProgram("enqueue-consume"))}
    mutants = {
        m.id: m
        for m in (
            FakeMutant("published-immediate", "SO-1", "enqueue-enqueue"),
            FakeMutant("skip-lock", "SO-1", "enqueue-consume"),
        )
    }
    check_program = _check(made)

    def replay(token: str, **how: object) -> SimpleNamespace:
        if token != "s1-abc":
            raise explorer.BadToken("the token does not begin with a version")
        made.violated.add("enqueue-enqueue")
        return check_program(found["enqueue-enqueue"], on_progress=lambda n: None, jobs=1)

    for module, name, value in (
        (programs, "PROGRAMS", found),
        (programs, "MUTANTS", mutants),
        (programs, "check_program", check_program),
        (programs, "replay", replay),
        (lesson_runner, "stories", lambda lesson: {}),  # chapters run real programs
        (
            fair_simulation,
            "compare",
            partial(fair_simulation.compare, total=4000),
        ),  # of a quarter of a million
        (counterexample_annotation, "annotated", lambda run: run),  # the fakes cannot be explored
        (pipeline, "audit_paths", _audit(made)),
        (
            properties,
            "PROPERTIES",
            {
                id: SimpleNamespace(id=id, sentence=f"What {id} says.", kind="safety", source="S")
                for id in ("SO-1", "ES-5")
            },
        ),
        (blackbox, "BLACKBOX", ()),
        (profiles, "ORACLE", ()),
        (sys.modules["seriatim_models.cli.audit"], "SYSTEMS", {}),  # the fakes stand to no promise
        *((explorer, name, SimpleNamespace) for name in ("Dpor", "Random", "Pct", "Pos")),
    ):
        monkeypatch.setattr(module, name, value, raising=False)
    for name in [name for name in SYSTEMS if name != "fair"]:  # the smallest is enough
        monkeypatch.delitem(SYSTEMS, name)
    return made


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one sentence with which bad usage is refused."""
        assert self.code == 2
        (sentence,) = [line for line in self.err.splitlines() if line.startswith("seriatim: ")]
        return sentence


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Ran]:
    """Run the command line in this process."""

    def run(*arguments: str) -> Ran:
        code = cli.run(arguments)
        out, err = capfdbinary.readouterr()
        return Ran(code, out.decode(), err.decode())

    return run
