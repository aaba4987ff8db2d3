"""Checking a program: the explorer finds its schedules, the properties judge the history of each."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from operator import is_
from types import ModuleType
from typing import Any

import msgspec

from seriatim_models.explorer import BadToken, Dpor, Progress, Replay, Result, Watch, World, explore
from seriatim_models.explorer.model.attributes import classes_of
from seriatim_models.explorer.model.world import Record
from seriatim_models.explorer.search.frontier import Count
from seriatim_models.history.event import Event, event
from seriatim_models.programs.base import Mutant, Program
from seriatim_models.programs.disk import MemoryDisk
from seriatim_models.programs.mutant_modules import load, reference_classes
from seriatim_models.properties import PROPERTIES, Finding, Verdict
from seriatim_models.properties.whitebox.judging import judge


@dataclass
class ProgramResult:
    """The result of exploring a program."""

    program: Program
    mutant: Mutant | None
    findings: list[Finding]
    """One for each property, over all executions: the sum of the cases, and a witness if any execution violates it."""
    explored: Result
    seconds: float
    witness: list[Event] = field(default_factory=list)
    """The history of the counterexample."""

    @property
    def verdict(self) -> Verdict:
        """Violated if any property or the explorer reports a violation.

        Ok only if all schedules were explored and each property had a case in one of them.
        """
        verdicts = {Verdict(self.explored.verdict), *(f.verdict for f in self.findings)}
        order = (Verdict.VIOLATED, Verdict.INCONCLUSIVE, Verdict.OK)
        return next(v for v in order if v in verdicts)


KNOWN_MAX = 2**16
"""How many histories a `Judge` remembers to have judged; after that it begins anew. Each takes some 150 bytes."""


BLOCK = 16
"""So many records have one digest: to make one costs more than to read a few records again."""
_encode = msgspec.msgpack.Encoder().encode


def _digest(*parts: bytes) -> bytes:
    return blake2b(b"".join(parts), digest_size=16).digest()


class RecordedHistory:
    """The history of one execution after another; what neighbours in a search have in common is made once.

    Two executions have a record in common if it is the same object: see `World.repeating`.
    """

    def __init__(self) -> None:
        self._records: Sequence[Record] = ()
        self._texts: list[bytes] = []
        """Of each record, all that properties read of it."""
        self._digests: list[bytes] = []
        """After each block of `BLOCK` records, of it and all before."""
        self._events: list[Event] = []
        """Of the first records; the others have not been asked for."""

    def follow(self, records: Sequence[Record]) -> bytes:
        """Go on to these records; returns a digest of all that properties read of them: all but the steps."""
        alike = list(map(is_, self._records, records))
        same = alike.index(False) if False in alike else len(alike)
        texts, digests = self._texts, self._digests
        del digests[same // BLOCK :], texts[same:], self._events[same:]
        self._records = records
        texts += [_encode((thread, ev, args)) for _, thread, ev, args in records[same:]]
        for end in range(BLOCK * (len(digests) + 1), len(texts) + 1, BLOCK):
            digests.append(_digest(*digests[-1:], *texts[end - BLOCK : end]))
        return _digest(*digests[-1:], *texts[BLOCK * len(digests) :])

    def events(self) -> list[Event]:
        """The records as qh/1 events; the time is the step."""
        made = self._events
        made += [_event(i, self._records[i]) for i in range(len(made), len(self._records))]
        return list(made)


class _JudgeCounts(msgspec.Struct):
    """What `Judge.counts` gives, by property."""

    tested: dict[str, Count]
    untestable: dict[str, Count]
    violated: dict[str, Finding]


class Judge:
    """Judges each execution as it ends, and adds up the cases; `counts` and `add` carry them between processes.

    Executions of different traces often record the same history, as reads record nothing: it is judged once. The
    digest leaves the steps out, which no property of a reference reads: time is the order of events there.
    """

    def __init__(
        self,
        ids: Sequence[str],
        known: dict[bytes, list[tuple[str, int, int]]] | None = None,
    ) -> None:
        """`known` has, by their digests, (property, cases tested, cases untestable) of histories that violate nothing.

        Those with no case are not in the list.
        """
        self.properties = [PROPERTIES[i] for i in ids]
        self._known = {} if known is None else known
        self._history = RecordedHistory()
        self.tested = dict.fromkeys(ids, 0)
        self.untestable = dict.fromkeys(ids, 0)
        self.violated: dict[str, Finding] = {}

    def __call__(self, world: World) -> str | None:
        digest = self._history.follow(world.records)
        cases = self._known.get(digest)
        first: Finding | None = None
        if cases is None:
            cases = []
            for finding in judge(self._history.events(), self.properties):
                if finding.n_tested or finding.n_untestable:
                    cases.append((finding.property, finding.n_tested, finding.n_untestable))
                if finding.verdict is Verdict.VIOLATED:
                    self.violated[finding.property] = finding
                    first = first or finding
            if first is None:
                if len(self._known) >= KNOWN_MAX:
                    self._known.clear()
                self._known[digest] = cases
        if not world.is_replay:
            for id, tested, untestable in cases:
                self.tested[id] += tested
                self.untestable[id] += untestable
        if first is None:
            return None
        return f"{first.property}: {first.explanation}"

    # What several processes add up together, see `seriatim_models.explorer.search.runner.Summing`.

    def empty(self) -> Judge:
        """Return a judge of the same properties that has counted nothing; it knows the same histories."""
        return Judge([p.id for p in self.properties], self._known)

    def counts(self) -> dict[str, Any]:
        """Return what was added up, as plain data."""
        return {
            "tested": self.tested,
            "untestable": self.untestable,
            "violated": msgspec.to_builtins(self.violated),
        }

    def add(self, counts: dict[str, Any]) -> None:
        """Add what `counts` of another judge returned. Raises `ValueError` or `KeyError` for what none did."""
        others = msgspec.convert(counts, _JudgeCounts)
        for sums, more in ((self.tested, others.tested), (self.untestable, others.untestable)):
            for id, n in more.items():
                sums[id] += n
        self.violated = {**others.violated, **self.violated}

    def findings(self, subject: str, explored: Result) -> list[Finding]:
        """One finding for each property; what was not violated is ok only if every schedule was explored."""
        whole = explored.exhausted and not explored.untested
        broken = explored.counterexample is not None
        ended = "" if whole else "a violation ended the search" if broken else explored.why
        found = []
        for p in self.properties:
            bad = self.violated.get(p.id)
            silent = "" if self.tested[p.id] else "no schedule that was run has a case"
            ok = whole and not silent
            found.append(
                Finding(
                    property=p.id,
                    verdict=Verdict.VIOLATED if bad else Verdict.OK if ok else Verdict.INCONCLUSIVE,
                    n_tested=self.tested[p.id],
                    n_untestable=self.untestable[p.id],
                    n_violations=bad.n_violations if bad else 0,
                    subject=subject,
                    explanation=bad.explanation
                    if bad
                    else "; ".join(filter(None, (silent, ended))),
                    witness=bad.witness if bad else [],
                )
            )
        return found


def history(world: World) -> list[Event]:
    """Return what the reference recorded in an execution, as qh/1 events; the time is the step."""
    return [_event(i, r) for i, r in enumerate(world.records)]


def _event(i: int, record: Record) -> Event:
    return event(i, record.step, record.thread, record.ev, record.args, "model")


def subject(program: Program, mutant: Mutant | None) -> str:
    """Return the name of a program, or of a mutant in it, in tokens and tables."""
    return program.id if mutant is None else f"{program.id}+{mutant.id}"


def runnable(program: Program, mutant: Mutant | None) -> Callable[[World], None]:
    """Return the program, over the reference or a mutant, as the explorer runs it."""
    lib = load(program.reference, mutant)

    def run(world: World) -> None:
        program.build(world, lib)

    run.__name__ = run.__qualname__ = subject(program, mutant)
    return run


def observed_classes(program: Program, lib: ModuleType) -> list[type]:
    """Return the classes whose attributes two threads of a program may touch: those of `lib` and the scene's.

    The disk in memory is not among them: it stands for a file system, each of whose calls is atomic.
    """
    scene = sys.modules[program.build.__module__]
    package = __name__.rpartition(".")[0]
    named = {value.__module__ for value in vars(scene).values() if isinstance(value, type)}
    modules = [sys.modules[name] for name in sorted(named) if name.startswith(f"{package}.")]
    found = reference_classes(lib)
    found += [cls for module in modules for cls in classes_of(module)]
    return [cls for cls in found if not issubclass(cls, MemoryDisk)]


def check_program(
    program: Program,
    mutant: Mutant | None = None,
    *,
    strategy: Any = None,
    seconds: float | None = None,
    properties: Sequence[str] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    keep_going: bool = False,
    attributes: bool = False,
    **budgets: Any,
) -> ProgramResult:
    """Explore `program` (with `mutant` in place of the reference) and judge every execution.

    A mutant is judged by the property that it must violate, and by no other, unless `properties` names some.
    With `attributes` a data race on a plain attribute of the reference or the scene is a violation, too.
    """
    ids = properties or ((mutant.killed_by,) if mutant is not None else program.properties)
    verdicts = Judge(ids)
    explored = explore(
        runnable(program, mutant),
        strategy or Dpor(real_time=program.real_time),
        name=subject(program, mutant),
        seconds=seconds,
        on_execution=verdicts,
        progress=None if on_progress is None else Watch(on_progress),
        keep_going=keep_going,
        attributes=observed_classes(program, load(program.reference, mutant))
        if attributes
        else False,
        **budgets,
    )
    if (case := explored.counterexample) is not None:
        if verdicts.violated:
            # What was judged last is some execution of its shrinking: the findings are to be of this one.
            shown = Judge(ids)
            again = {name: budgets[name] for name in ("max_steps",) if name in budgets}
            once = Replay(case.token)
            run = runnable(program, mutant)
            explore(run, once, name=case.program, on_execution=shown, **again)
            verdicts.violated.update(shown.violated)
        # The explorer's token names the schedule; the name of its program stands before it.
        token = f"{subject(program, mutant)}:{case.token}"
        option = "--attributes " if attributes else ""
        explored.counterexample = replace(
            case, token=token, command=f"seriatim check {option}--replay {token}"
        )
    return ProgramResult(
        program,
        mutant,
        verdicts.findings(subject(program, mutant), explored),
        explored,
        explored.seconds,
    )


def replay(
    token: str,
    programs: Mapping[str, Program],
    mutants: Mapping[str, Mutant],
    *,
    attributes: bool = False,
) -> ProgramResult:
    """Run the one schedule that a token encodes, and judge it, with `attributes` as of `check_program`.

    Raises `BadToken` if the token is not one, or if what it was made from is not there any more.
    """
    name, colon, schedule = token.partition(":")
    if not colon:
        raise BadToken(
            "a token is PROGRAM:SCHEDULE or PROGRAM+MUTANT:SCHEDULE; this one names no program"
        )
    program_id, _, mutant_id = name.partition("+")
    for id, known, kind in ((program_id, programs, "program"), (mutant_id, mutants, "mutant")):
        if (id or kind == "program") and id not in known:
            near = difflib.get_close_matches(id, known, 1)
            raise BadToken(
                f"the token names the {kind} {id!r}, and there is none"
                + (f"; the nearest is {near[0]!r}" if near else "")
            )
    return check_program(
        programs[program_id],
        mutants[mutant_id] if mutant_id else None,
        strategy=Replay(schedule),
        attributes=attributes,
    )
