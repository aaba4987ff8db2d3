"""A report with something of everything in it."""

from __future__ import annotations

import pytest

from seriatim_models.history.event import Event
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report import (
    AuditRun,
    CounterexampleSummary,
    Edit,
    MutantRun,
    ProgramRun,
    Quarantined,
    Report,
)

INTERLEAVING = """\
step  enqueue                              deliver
1     read  entry.state -> AVAILABLE
2                                          cas   entry.state AVAILABLE -> ACQUIRED  ok
3     write entry.state -> DEQUEUED
"""


def program_run(
    id: str, traces: int, *findings: Finding, broken: bool = False, mutant: str | None = None
) -> ProgramRun:
    return ProgramRun(
        program=id,
        title="An immediate message meets the asynchronous delivery.",
        mutant=mutant,
        strategy="dpor",
        verdict=Verdict.VIOLATED if broken else Verdict.OK,
        exhausted=not broken,
        traces=traces,
        complete=traces,
        blocked=0,
        seconds=0.5,
        bounds="One message, two consumers; a second message is beyond.",
        findings=list(findings),
        command=f"seriatim check {id}" + (f" --mutant {mutant}" if mutant else ""),
        counterexample=CounterexampleSummary(token="s1-abcdef", steps=3, text=INTERLEAVING)
        if broken
        else None,
    )


@pytest.fixture
def race() -> MutantRun:
    violated = Finding.of(
        "IM-1", 1, [("m1 was both delivered and dequeued", [Event(i=1, ev="deliver", m="m1")])]
    )
    return MutantRun(
        mutant="published-immediate",
        title="The state is checked, then written: <two> steps.",
        origin="Strict ordering, the article",
        expected="IM-1",
        expected_steps=3,
        run=program_run("immediate-async", 2, violated, broken=True, mutant="published-immediate"),
        edits=[Edit(reference="if entry.acquire():", mutant="if entry.available:")],
    )


@pytest.fixture
def report(race: MutantRun) -> Report:
    ids = ["SO-1", "SO-3", "SO-10", "IM-1", "WK-1"]
    return Report(
        command="seriatim tour",
        started="2026-01-01 00:00:00 UTC",
        seconds=12.3,
        versions={"seriatim": "0.1.0", "python": "3.11.7"},
        sentences={id: f"What {id} says & means." for id in ids},
        programs=[
            program_run(
                "enqueue-enqueue", 12, Finding(property="SO-1", verdict=Verdict.OK, n_tested=24)
            ),
            program_run(
                "immediate-async", 1234, Finding(property="IM-1", verdict=Verdict.OK, n_tested=99)
            ),
            program_run("many", 98765, Finding(property="SO-10", verdict=Verdict.OK, n_tested=7)),
        ],
        mutants=[race],
        audits=[
            AuditRun(
                paths=["tests/data"],
                engine="spark",
                profile="any",
                findings=[
                    Finding(property="SO-3", verdict=Verdict.OK, n_tested=4519, n_untestable=1001),
                    Finding(property="WK-1", verdict=Verdict.INCONCLUSIVE, n_tested=0),
                ],
                events=31313,
                quarantined=2,
                quarantine=[Quarantined(file="h.jsonl", line=7, reason="field t: expected int")],
                statistics={"queues": 2},
                seconds=9.0,
                command="seriatim audit tests/data --engine spark",
            )
        ],
    )
