"""The report as plain data: what was run, what each property's verdict is, and the command that shows it again.

No verdict is computed from events here: only the verdict of the whole from those of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seriatim_models.conformance.profile_consistency import ProfileConsistency
from seriatim_models.history.depth import whole_number
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report.story import Story

EXIT_CODES = {Verdict.OK: 0, Verdict.VIOLATED: 1, Verdict.INCONCLUSIVE: 3}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Violated if any is; else inconclusive if any is, or if there is none; else ok."""
    seen = set(verdicts)
    if Verdict.VIOLATED in seen:
        return Verdict.VIOLATED
    if Verdict.INCONCLUSIVE in seen or not seen:
        return Verdict.INCONCLUSIVE
    return Verdict.OK


class CounterexampleSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An interleaving that breaks a property."""

    token: str
    """Replays it: see `again`."""
    steps: int
    text: str
    """One column per thread, one row per step."""
    story: Story | None = None
    """The same to step through, with the state after each step."""

    @property
    def again(self) -> str:
        """The command that shows it again; the story has it where the token alone does not name the program."""
        named = (".py::", "--schedules", "--pair")
        if self.story is not None and any(how in self.story.replay for how in named):
            return self.story.replay
        return f"seriatim show {self.token}"


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a mutant differs from the reference."""

    reference: str
    mutant: str


class ProgramRun(msgspec.Struct, frozen=True, kw_only=True):
    """One program under the schedules that a strategy chose."""

    program: str
    title: str
    strategy: str
    verdict: Verdict
    """Of the search and of every finding together."""
    exhausted: bool
    """Whether every trace within the bounds was covered."""
    traces: int | None
    """Distinct ones; None if they were not counted."""
    complete: int
    blocked: int
    seconds: float
    bounds: str
    """The bounds of the program, and what lies beyond them."""
    findings: list[Finding]
    command: str
    why: str = ""
    """The verdict of the search in one sentence: it can also end in a deadlock or an error, which no property names."""
    limits: dict[str, int | float | None] = {}
    """Every bound and budget of the search that applied."""
    split: str = ""
    """What it cost to share the search between processes, if it was shared."""
    exchanged: str = ""
    """How many traces those that were run stand for, if identical threads were exchanged."""
    mutant: str | None = None
    counterexample: CounterexampleSummary | None = None

    @property
    def doubt(self) -> str:
        """Why it is inconclusive, with the properties that had no case; empty if it is not."""
        if self.verdict is not Verdict.INCONCLUSIVE:
            return ""
        silent = ", ".join(f.property for f in self.findings if not f.n_tested)
        why = f"no schedule that was run has a case of {silent}" if silent else ""
        return "; ".join(filter(None, (self.why, why)))

    @property
    def covered(self) -> str:
        """What the search can claim, in words: only one that ended by itself covered every schedule."""
        if self.exhausted:
            return "every schedule"
        if self.verdict is Verdict.VIOLATED:
            return "until it broke"
        return "a part" if self.complete or self.blocked else "nothing"

    @property
    def story(self) -> Story | None:
        """The counterexample to step through, if there is one."""
        return self.counterexample.story if self.counterexample else None


class MutantRun(msgspec.Struct, frozen=True, kw_only=True):
    """One mutant, and whether the property that must detect it did."""

    mutant: str
    title: str
    origin: str
    expected: str
    """Id of the property that must be violated."""
    expected_steps: int
    run: ProgramRun
    edits: list[Edit] = []

    @property
    def killed_by(self) -> list[str]:
        """Ids of the properties that it violates."""
        return [f.property for f in self.run.findings if f.verdict is Verdict.VIOLATED]

    @property
    def killers(self) -> str:
        """The properties that it violates, in words."""
        if self.killed_by:
            return ", ".join(self.killed_by)
        if self.run.verdict is Verdict.VIOLATED:
            return f"no property: {self.run.why}"
        return (
            "nothing: it survives"
            if self.run.exhausted
            else "nothing yet: the search was cut short"
        )

    @property
    def as_expected(self) -> bool:
        """Whether the property that must be violated is."""
        return self.expected in self.killed_by

    @property
    def verdict(self) -> Verdict:
        """Of the claim that it is detected: one that survives is a violation of that claim, if the search was done."""
        if self.as_expected:
            return Verdict.OK
        done = self.run.exhausted or self.run.verdict is Verdict.VIOLATED
        return Verdict.VIOLATED if done else Verdict.INCONCLUSIVE


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a history that could not be read, and why."""

    file: str
    line: int
    reason: str


class AuditRun(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded history, or several, judged."""

    paths: list[str]
    engine: str
    profile: str
    findings: list[Finding]
    events: int
    quarantined: int
    seconds: float
    command: str
    quarantine: list[Quarantined] = []
    """The first of them; `quarantined` counts all."""
    statistics: dict[str, int] = {}
    standings: list[ProfileConsistency] = []
    """Which systems' profiles each recording is consistent with."""
    stories: dict[str, Story] = {}
    """The runs with a violation, to step through; drawn, not written to JSON."""

    @property
    def verdict(self) -> Verdict:
        """Violated if any finding is; ok if some property of every recording is ok; else inconclusive.

        A recording cannot test everything: what it could not test still stands in the findings, as inconclusive.
        But what looks like a violation, and takes a declaration or a further event to be one, leaves the whole so.
        """
        verdicts = [{f.verdict for f in findings} for findings in self.by_recording().values()]
        if any(Verdict.VIOLATED in found for found in verdicts):
            return Verdict.VIOLATED
        tested = verdicts and all(Verdict.OK in found for found in verdicts)
        tested = tested and not any(f.decides for f in self.findings)
        return Verdict.OK if tested else Verdict.INCONCLUSIVE

    def by_recording(self) -> dict[str, list[Finding]]:
        """The findings of each recording, in the order in which they came."""
        by_subject: dict[str, list[Finding]] = {}
        for finding in self.findings:
            by_subject.setdefault(finding.subject, []).append(finding)
        return by_subject


class PropertyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One property over everything that the report ran it on, mutants aside."""

    id: str
    verdict: Verdict
    n_tested: int
    where: list[str]
    """The programs that tested it, and ``recordings``."""


class Report(msgspec.Struct, kw_only=True):
    """Everything that one command found."""

    command: str
    started: str
    seconds: float = 0.0
    seed: int | None = None
    versions: dict[str, str] = {}
    sentences: dict[str, str] = {}
    """The sentence of each property, by id."""
    programs: list[ProgramRun] = []
    mutants: list[MutantRun] = []
    audits: list[AuditRun] = []
    matrix: list[Verdict] = []
    """That of each system whose matrix stands beside the rest, on the page only."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all runs."""
        return worst(
            [
                *(run.verdict for run in self.programs),
                *(mutant.verdict for mutant in self.mutants),
                *(audit.verdict for audit in self.audits),
                *self.matrix,
            ]
        )

    @property
    def traces(self) -> int:
        """How many of all programs together, mutants aside."""
        return sum(run.traces or 0 for run in self.programs)

    @property
    def exit_code(self) -> int:
        """That of the command: 0 ok, 1 violated, 3 inconclusive."""
        return EXIT_CODES[self.verdict]

    def rows(self) -> list[PropertyRow]:
        """Each property once, in reading order, over the runs that tested it; tested by none, it is inconclusive."""
        by_id: dict[str, list[tuple[str, Finding]]] = {}
        for run in self.programs:
            for finding in run.findings:
                by_id.setdefault(finding.property, []).append((run.program, finding))
        for audit in self.audits:
            for finding in audit.findings:
                by_id.setdefault(finding.property, []).append(("recordings", finding))
        return [_row(id, by_id[id]) for id in sorted(by_id, key=_in_reading_order)]


def _row(id: str, findings: list[tuple[str, Finding]]) -> PropertyRow:
    tested = [(where, f) for where, f in findings if f.n_tested]
    return PropertyRow(
        id=id,
        verdict=worst(f.verdict for _, f in tested),
        n_tested=sum(f.n_tested for _, f in tested),
        where=list(dict.fromkeys(where for where, _ in tested)),
    )


def _in_reading_order(id: str) -> tuple[str, int, str]:
    """SO-2 before SO-10."""
    family, _, number = id.partition("-")
    return family, whole_number(number) or 0, number
