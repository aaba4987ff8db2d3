"""Mistakes of order, followed: which system rejects each, and at which step.

python -m seriatim_workshop.formal.order_followed                  # follow what was not followed as the code is now
python -m seriatim_workshop.formal.order_followed --seconds 300    # stop after so long; it goes on where it was
python -m seriatim_workshop.formal.order_followed NodeList _move   # those with this in their names
python -m seriatim_workshop.formal.order_followed --write spec/ORDER_FOLLOWED.md    # the table of what was tried

The mistakes are those of `mutation.order` in the queue, its groups and its hand-over. Each is followed in the program
that caught it under every schedule, if one did, be it of the call matrix; and then in `PROGRAMS_TRIED`, until a system
rejects an execution. Of one that was caught and is not rejected more executions are followed of the program that caught
it. Each outcome is kept with a digest of the reference and the systems that it was found with: whatever was found with
others is followed again, after what was never followed; what was rejected first where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path

from seriatim_models.matrix.work import PairData
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.base import Mutant
from seriatim_models.programs.mutant_modules import SYSTEMS, load, run_modules, source
from seriatim_workshop.formal import exploring, theory
from seriatim_workshop.formal.follow_matrix import follow_pair, title
from seriatim_workshop.formal.follow_matrix import programs as matrix_programs
from seriatim_workshop.formal.followed import Followed
from seriatim_workshop.formal.order_reasons import reason
from seriatim_workshop.formal.simulation import shortened
from seriatim_workshop.formal.traces import follow, programs, races
from seriatim_workshop.mutation.coverage import block_name, probed
from seriatim_workshop.mutation.operators import Mutation
from seriatim_workshop.mutation.order import order_mutations
from seriatim_workshop.mutation.order_tables import recorded

FILES = ("queue", "groups", "handover")
JOURNAL = Path(__file__).with_name("order_followed.jsonl")
FOLLOWERS = (
    *("follower.py", "follow_entries.py", "follow_handover.py"),
    *("follow_jobs.py", "follow_lists.py", "follow_wakeups.py"),
    *("exploring.py", "recorder.py", "simulation.py"),
)
CAUGHT_IN = 200
"""So many executions of the program that caught it are followed at first."""
CAUGHT_IN_THE_END = 3000
"""And so many where neither these nor other programs led to anything."""
EACH = 15
"""And so many of each of the others."""
PROGRAMS_TRIED = (
    "enqueue-consume",
    "release-again-rest",
    "interest",
    "close",
    "group-released",
    "group-given-up",
    "handover",
    "handover-two-targets",
    "push-two",
    "push-close",
    "exclusive",
    "pause-and-take",
    "browse-taken",
    "expiring",
    "held",
    "priority-wakes",
    "priority-arrival",
    "subscribe-release",
    "credit-in-vain",
    "immediate-returned",
    "consumer-list-middle",
)
OTHERS = 3
"""So many other programs, where none of those comes to a mistake."""
NOT_JUDGED = "not judged"
"""What every schedule says of a mistake that `mutation.order_run` has not tried in this form."""
MATRIX_DEPTH = 2
"""So many calls lead at most to the state of a program of the call matrix that is looked for."""
SECONDS = 900
"""Of the processor, after which a mutant that has not come to an end is given up, if no step of it was before."""

VERDICTS = ("rejected", "fails", "endless", "races", "accepted", "not reached")
"""In the order of the page's columns."""

OLDER = "(before)"
"""What marks an outcome of another reference, or other systems, than those of now."""


@dataclass(frozen=True)
class OrderFollowed:
    """What following one mistake of order came to."""

    key: str
    name: str
    verdict: str
    """rejected, accepted, races (and nothing was rejected), fails (it raises or gets stuck first), endless, or not
    reached: no followed execution of any program comes to it."""
    system: str = ""
    """Which system rejected it."""
    where: str = ""
    """At which step and why, or how it failed."""
    program: str = ""
    digest: str = ""
    """Of the reference and the systems that it was followed with; see `digest`."""


@cache
def digest() -> str:
    """What the outcomes depend on: the text of the reference, of the systems and of those that follow."""
    texts = [source(file) for file in FILES]
    paths = [*sorted(theory.FOLDER.glob("*.py")), *(JOURNAL.with_name(f) for f in FOLLOWERS)]
    texts += [path.read_text("utf-8") for path in paths]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def mutations() -> list[Mutation]:
    """Every mistake of order of the files that the systems speak of."""
    return [m for file in FILES for m in order_mutations(file)]


def caught_by() -> dict[str, tuple[str, str]]:
    """What every schedule said of each mistake, by key: outcome, and by what."""
    return {key: (found.outcome, found.by) for key, found in recorded().items()}


def programs_of(mutation: Mutation, by: str) -> dict[str, int]:
    """In which programs a mistake is followed, and how many executions of each: first the one that caught it.

    A program that does not come to the block with the mistake runs as with the right code, and is left out. If none
    of `PROGRAMS_TRIED` does, the first `OTHERS` of all that do are taken.
    """
    block = block_name(mutation.file, mutation.path)
    caught_in = by.rsplit(" in ", 1)[-1]
    first = {caught_in: CAUGHT_IN} if caught_in in PROGRAMS else {}
    others = [p for p in PROGRAMS_TRIED if _comes_to(p, block)]
    if not others:
        every = (p for p in programs() if p not in PROGRAMS_TRIED and _comes_to(p, block))
        others = [*islice(every, OTHERS)]
    return first | {p: EACH for p in others if p not in first}


def _comes_to(program: str, block: str) -> bool:
    return not block or block in reached(program)


@cache
def matrix_program(by: str) -> tuple[str, PairData] | None:
    """The program of the call matrix that caught a mistake: of which system, and the program; None if none did."""
    named = re.search(r" in (pull|push) (?:settle |serve )?(\S+: .*)", by)
    if named is None:
        return None
    system, name = named.groups()
    # Deeper plans have all that shallower ones have, and cost more to make.
    every = (d for depth in range(MATRIX_DEPTH + 1) for d in matrix_programs(system, depth))
    return next(((system, data) for data in every if title(data) == name), None)


@dataclass(frozen=True)
class Attempt:
    """One mistake that is to be followed: in which programs, and in which first."""

    mutation: Mutation
    tried_in: dict[str, int]
    """See `programs_of`."""
    pair: tuple[str, PairData] | None
    """See `matrix_program`."""
    by: str
    """What every schedule says caught it."""
    first: str = ""
    """The program in which it was rejected with another reference or other systems, if it was."""

    @property
    def mutant(self) -> Mutant:
        """The queue with the mistake."""
        made = self.mutation
        edits = ((source(made.file), made.source),)
        return Mutant(f"order-{made.key}", "", made.name, "queue", edits, "", "", 0)

    def runs(self) -> Iterator[Followed]:
        """What came of following it, program after program: first where it was rejected before."""
        lib, tried_in = load("queue", self.mutant), self.tried_in
        if self.first in tried_in:
            tried_in = {self.first: tried_in[self.first], **tried_in}
        if self.pair is not None:
            yield follow_pair(*self.pair, CAUGHT_IN, self.mutant)
        for program, executions in tried_in.items():
            yield follow(program, executions=executions, lib=lib, may_race=True)
        last = self.by.rsplit(" in ", 1)[-1]
        if tried_in.get(last) == CAUGHT_IN:
            yield follow(last, executions=CAUGHT_IN_THE_END, lib=lib, may_race=True)

    def outcome(self) -> OrderFollowed:
        """Follow it in its program and then in the others, until an execution is rejected.

        Whether the code races is asked when nothing was rejected, and nothing else went wrong.
        """
        mutation, failure, endless = self.mutation, "", ""
        for found in self.runs():
            program = found.program
            if found.rejected:
                where = shortened(found.rejected)
                return _outcome(mutation, "rejected", where, system=found.system, program=program)
            if found.stood_still:  # each of the others may need as long
                return _outcome(mutation, "endless", f"{program}: {found.stood_still}"[:200])
            if found.counterexample is not None and not failure:
                failure = f"{program}: {found.counterexample}"[:200]
            if found.no_end and not endless:
                endless = f"{program}: {found.no_end}"[:200]
        if failure or endless:
            return _outcome(mutation, "fails" if failure else "endless", failure or endless)
        lib = load("queue", self.mutant)
        for program, executions in self.tried_in.items():
            found = races(program, lib, executions)
            if found.stood_still:
                return _outcome(mutation, "endless", f"{program}: {found.stood_still}"[:200])
            if found.race:
                return _outcome(mutation, "races", f"{program}: {found.race}"[:200])
        return _outcome(mutation, "accepted" if self.tried_in else "not reached")


def attempt_at(mutation: Mutation, by: str, first: str = "") -> Attempt:
    """What is kept here of what it comes to is not found anew by each process."""
    return Attempt(mutation, programs_of(mutation, by), matrix_program(by), by, first)


def followed(mutation: Mutation, by: str, first: str = "") -> OrderFollowed:
    """Follow one mistake in this process; see `Attempt`."""
    return attempt_at(mutation, by, first).outcome()


def _outcome(
    mutation: Mutation, verdict: str, where: str = "", *, system: str = "", program: str = ""
) -> OrderFollowed:
    return OrderFollowed(
        mutation.key, mutation.name, verdict, system, where, program, digest=digest()
    )


@cache
def reached(program: str) -> frozenset[str]:
    """The blocks of the right reference that the first `EACH` followed executions of a program come to."""
    found: set[str] = set()
    code = {m: compile(probed(m), f"<probed {m}>", "exec") for m in SYSTEMS["queue"]}
    lib = run_modules(code, f"probed_{program}", {"reached_": found.add})
    follow(program, executions=EACH, lib=lib, may_race=True)
    return frozenset(found)


def isolated(mutation: Mutation, by: str, first: str = "") -> OrderFollowed:
    """The same in a process of its own, which ends after `SECONDS`: a mutant may need more than there is.

    The processor's time alone ends it: by a clock one that loops and a busy machine look the same.
    A server without other threads forks the process: in a copy of this one a lock may be held by who is not there.
    """
    attempt = attempt_at(mutation, by, first)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    receives, sends = context.Pipe(duplex=False)
    process = context.Process(target=_follow_alone, args=(attempt, exploring.PROCESSOR, sends))
    process.start()
    sends.close()
    with receives:
        try:
            return OrderFollowed(**json.loads(receives.recv_bytes()))
        except EOFError:  # it was ended
            return _outcome(mutation, "endless")
        finally:
            process.join()


def _follow_alone(attempt: Attempt, processor: float, sends: Connection) -> None:
    """What the process does; `processor` is `exploring.PROCESSOR` of who asks."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    exploring.PROCESSOR = processor
    try:
        found = attempt.outcome()
    except BaseException as error:  # whatever the mutant raises is its outcome
        found = _outcome(attempt.mutation, "fails", f"{error!r}"[:200])
    sends.send_bytes(json.dumps(asdict(found)).encode())
    os._exit(0)


def tried(journal: Path = JOURNAL) -> dict[str, OrderFollowed]:
    """What is known, by key."""
    if not journal.exists():
        return {}
    lines = journal.read_text("utf-8").splitlines()
    return {found.key: found for found in (OrderFollowed(**json.loads(line)) for line in lines)}


def stale(known: dict[str, OrderFollowed]) -> list[Mutation]:
    """The mistakes that are to be followed: those that never were, then the others, what is soonest done first."""
    old = [m for m in mutations() if m.key not in known or known[m.key].digest != digest()]
    soon = ("rejected", "accepted", "races", "not reached", "fails", "endless")
    return sorted(old, key=lambda m: soon.index(known[m.key].verdict) if m.key in known else -1)


def try_all(
    seconds: float, words: Sequence[str] = (), journal: Path = JOURNAL
) -> Iterator[OrderFollowed]:
    """Follow what is `stale`, for so long, and keep each outcome; forget what is no mistake any more.

    `words`: of these only those with one of the words in their names.
    """
    known, by = tried(journal), caught_by()
    kept = [known[m.key] for m in mutations() if m.key in known]
    journal.write_text("".join(json.dumps(asdict(f)) + "\n" for f in kept), "utf-8")
    for program in PROGRAMS_TRIED:  # once, and not anew by each process; so are the systems' steps
        reached(program)
    until = time.monotonic() + seconds
    for mutation in stale(known):
        if time.monotonic() > until:
            return
        if words and not any(word in mutation.name for word in words):
            continue
        before = known.get(mutation.key)
        first = before.program if before is not None else ""
        found = isolated(mutation, by.get(mutation.key, ("", ""))[1], first)
        with journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(found)) + "\n")
        yield found


# ---- the page


def page() -> str:
    """The page, of what was tried: counts, what was accepted and why, and where each was rejected."""
    known, by = tried(), caught_by()
    rows = [
        (m, known[m.key], by.get(m.key, (NOT_JUDGED, ""))) for m in mutations() if m.key in known
    ]
    counts = Counter((caught, found.verdict) for _, found, (caught, _) in rows)
    outcomes = ["caught", "survived", "inconclusive", "out of time"]
    if any(caught == NOT_JUDGED for caught, _ in counts):
        outcomes.append(NOT_JUDGED)
    lines = [
        "# Mistakes of order, followed",
        "",
        "Generated: `python -m seriatim_workshop.formal.order_followed --write spec/ORDER_FOLLOWED.md`. "
        f"{len(rows)} of the {len(mutations())} mistakes of order in the queue, its groups and its hand-over "
        "([MUTATION.md](MUTATION.md) says what they are) were followed in all systems at once: in the program that "
        f"caught it under every schedule, and then in those of {len(PROGRAMS_TRIED)} others that come to the mistake "
        f"(if none does, in {OTHERS} of all that do); "
        f"{sum(f.digest == digest() for _, f, _ in rows)} of them with the reference and the systems as they are now, "
        f"the others, marked {OLDER}, with some as they were before. "
        "*Fails*: the program raises or gets stuck before a system says anything. "
        "*Endless*: it loops between two steps. "
        "*Races*: nothing is rejected, and two threads use a plain attribute with nothing to order them. "
        "*Not reached*: no followed execution of any program comes to it. "
        "*Not judged*: not run under every schedule since its function was changed. "
        "Of those that survived, or were inconclusive, no schedule shows any harm: to accept them misses nothing.",
        "",
        summary([(found.verdict, caught) for _, found, (caught, _) in rows]),
        "",
        f"| every schedule | {' | '.join(VERDICTS)} |",
        f"|---|{'---:|' * len(VERDICTS)}",
    ]
    for outcome in outcomes:
        numbers = [counts[outcome, v] for v in VERDICTS]
        lines.append(f"| {outcome} | {' | '.join(str(n) for n in numbers)} |")
    lines += [
        "",
        "## Caught by every schedule, or not judged, and accepted by the systems",
        "",
        "| mistake | caught by | why no system rejects it |",
        "|---|---|---|",
    ]
    for mutation, found, (caught, what) in rows:
        if caught in ("caught", NOT_JUDGED) and found.verdict == "accepted":
            lines.append(
                f"| {_named(found)} | {_cell(what or caught)} | {reason(mutation.scope)} |"
            )
    lines += ["", "## Rejected", "", "| mistake | system | program | where |", "|---|---|---|---|"]
    for _, found, _ in rows:
        if found.verdict == "rejected":
            cells = (f"`{found.system}`", found.program, found.where)
            lines.append(f"| {_named(found)} | {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join([*lines, ""])


def summary(rows: Sequence[tuple[str, str]]) -> str:
    """What came of those that every schedule catches. A row is its verdict, and what every schedule says of it."""
    verdicts = [verdict for verdict, caught in rows if caught == "caught"]
    accepted = verdicts.count("accepted")
    shown = verdicts.count("rejected")
    return (
        f"Every schedule catches {len(verdicts)}: a system rejects {shown} of them, {accepted} are accepted, for the "
        f"reasons below, and the other {len(verdicts) - shown - accepted} go wrong by themselves before that."
    )


def _named(found: OrderFollowed) -> str:
    """The mistake, marked where it was followed with another reference or other systems than those of now."""
    return _cell(found.name if found.digest == digest() else f"{found.name} {OLDER}")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def main(arguments: list[str]) -> int:
    """Try what has not been tried, or write the page; the exit code is 0."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.formal.order_followed",
        description="Hold mistakes of order in the queue against the systems of spec/induction.",
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="part of a mistake's name")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table; try nothing")
    asked = parser.parse_args(arguments)
    if asked.write:
        asked.write.write_text(page(), "utf-8")
        return 0
    for found in try_all(asked.seconds, asked.words):
        print(f"{found.verdict:8} {found.system:9} {found.name[:60]}", flush=True)
    counts = Counter(found.verdict for found in tried().values())
    print(f"{len(stale(tried()))} to be followed as the code is now")
    print(", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
