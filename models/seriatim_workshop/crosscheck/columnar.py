"""Columnar evaluation against the row-based one, on mutated histories: the same findings, in every field.

    python -m seriatim_workshop.crosscheck.columnar [--histories N] [--seed N] [--chunks K]

A history is one of a right or a faulty simulated system; into every second one the scene of a known violation is put,
of each kind in turn. Then a few events are dropped, doubled, swapped, or given another flag, holder, message, tag or
time, or a field that makes a case of a rare property; in every seventh history some clients use auto-ack.
Each history is judged event by event, by the columnar evaluator, and every K-th also as chunk files, by the tasks that
Spark runs, in one pass over Parquet, and as a stream, whose state is saved and loaded anew between its parts.
At the end it is printed in how many histories each property was violated. A property that was violated in none was not
compared where it matters: that fails too.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from seriatim_models.history import Event, Header, table, write_history
from seriatim_models.history.complete import complete
from seriatim_models.history.event import GAP, SETTLES
from seriatim_models.pipeline.audit import chunks, columns, one_pass
from seriatim_models.pipeline.audit.findings import RunStatistics, annotated
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.runs import plan
from seriatim_models.pipeline.audit.tasks import audit_chunks
from seriatim_models.pipeline.state_file import decoded, encoded
from seriatim_models.pipeline.stream.run_columns import RunColumns, SavedColumns
from seriatim_models.pipeline.synthetic.injected import KINDS, ViolationKind, scene
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.lifecycle import ACQUIRES
from seriatim_models.properties.columnar.evaluator import judge
from seriatim_workshop.bench.simulated_broker import FAULTS, SimulatedBroker
from seriatim_workshop.right.faults import FAULTS as PLANTED
from seriatim_workshop.right.faults import faulty
from seriatim_workshop.right.judging import completed

EVENTS_MAX = 250
"""Of a history: the quadratic parts of judging stay out of the way, and several messages come back."""
MUTATIONS_MAX = 4
RARE: tuple[dict[str, Any], ...] = (
    {"prio": 1}, {"pos": 3}, {"key": "k"}, {"part": 0}, {"autoack": True}, {"exclusive": True},
    {"nolocal": True}, {"cprio": 2}, {"prefetch": 1}, {"dead": True}, {"multiple": True},
    {"lvl": "broker"}, {"ph": "fail"}, {"ph": "info"},
)  # fmt: skip
"""Fields that make cases of rare properties, or take columns out of what is regular."""
NOTES: tuple[dict[str, Any], ...] = ({"rest": True}, {"rest": True, "depth": 1}, {"depth": 0})
DECLARED = ({"x-max-priority": 5}, {"x-single-active-consumer": True}, {"x-message-ttl": 9})


def _change(event: Event, **fields: Any) -> Event:  # Any: the fields of an event
    return msgspec.structs.replace(event, **fields)


def mutate(events: list[Event], chance: random.Random) -> None:
    """Change one thing, in place."""
    at, other = chance.randrange(len(events)), chance.randrange(len(events))
    event, from_there = events[at], events[other]
    match chance.randrange(12):
        case 0:
            del events[at]
        case 1:
            events.insert(other, event)
        case 2:
            near = min(len(events) - 1, at + chance.randrange(1, 6))
            events[at], events[near] = events[near], event
        case 3:
            events[at] = _change(event, redelivered=chance.choice([None, False, True]))
        case 4:
            who = {n: getattr(from_there, n) for n in ("conn", "ch", "gen", "ctag", "proc")}
            events[at] = _change(event, **who)
        case 5:
            events[at] = _change(
                event,
                m=from_there.m if event.m and from_there.m else event.m,
                ms=from_there.ms if event.ms and from_there.ms else event.ms,
            )
        case 6:
            events[at] = _change(event, dtag=max(0, (event.dtag or 0) + chance.choice([-1, 1])))
        case 7:
            shift = chance.choice([-(10**6), 10**4, 10**6, 2 * 10**10])
            events[at:] = [_change(e, t=None if e.t is None else e.t + shift) for e in events[at:]]
        case 8:
            events[at] = _change(event, **chance.choice(RARE))
        case 9:
            args = chance.choice(DECLARED)
            events.insert(
                at, Event(i=0, ev="declare", q=event.q or "q", t=event.t, args=dict(args))
            )
        case 10:
            args = chance.choice(NOTES)
            q = chance.choice(["", event.q])
            events.insert(at, Event(i=0, ev="note", q=q, t=event.t, lvl=event.lvl, args=dict(args)))
        case _:
            events.insert(at, Event(i=0, ev=GAP, t=event.t))


def inject(events: list[Event], kind: ViolationKind, chance: random.Random) -> None:
    """Put the scene of a violation somewhere, in place: in one piece, in a queue of its own or in one that is there."""
    made, shift = scene(kind, 0, 0, 1000)
    at = chance.randrange(len(events) + 1)
    begin = next((e.t for e in reversed(events[:at]) if e.t is not None), 0)
    q = chance.choice([made[0].q, *sorted({e.q for e in events if e.q})])
    lvl = chance.choice(["api", "broker"])
    moved = [
        _change(
            e,
            t=begin + (e.t or 0),
            t_lo=None if e.t_lo is None else begin + e.t_lo,
            lvl=lvl,
            q=q if e.q else "",
        )
        for e in made
    ]
    later = shift + 1000 * len(made)
    events[at:] = moved + [_change(e, t=None if e.t is None else e.t + later) for e in events[at:]]


def settle_at_once(events: list[Event], chance: random.Random) -> list[Event]:
    """The same with auto-ack on some connections: handing out settles, and no settlement is sent."""
    given = sorted({e.conn for e in events if e.ev in ACQUIRES})
    chosen = {conn for conn in given if chance.random() < 0.5}
    taking = ACQUIRES | {"consume"}
    return [
        _change(e, autoack=True) if e.conn in chosen and e.ev in taking else e
        for e in events
        if e.conn not in chosen or e.ev not in SETTLES
    ]


def history(seed: int) -> list[Event]:
    """The completed history of a seed."""
    return list(complete(recorded(seed)))


def recorded(seed: int) -> list[Event]:
    """The history of a seed as its recorder wrote it down."""
    chance = random.Random(seed)
    if seed % 3 == 2:
        fault = PLANTED[chance.randrange(len(PLANTED))]
        events = completed(faulty(fault, seed)[1])
    else:
        broker = SimulatedBroker(
            seed,
            chance.randrange(5, 50),
            prefetch=chance.randrange(1, 6),
            closes=chance.random() < 0.7,
            fault=chance.choice(["", "", "", *FAULTS]),
        )
        events = list(broker.run())
        if seed % 3:  # as if recorded inside the broker
            events = [_change(e, lvl="broker") for e in events]
    events = events[:EVENTS_MAX]
    if seed % 7 == 0:
        events = settle_at_once(events, chance)
    if seed % 2:
        inject(events, KINDS[seed // 2 % len(KINDS)], chance)
    for _ in range(chance.randrange(MUTATIONS_MAX + 1)):
        if events:
            mutate(events, chance)
    return [_change(e, i=n) for n, e in enumerate(events)]


def by_rows(events: Sequence[Event]) -> list[Finding]:
    """The findings of the row-based forms."""
    return [p.check(events) for p in BLACKBOX]


def by_chunks(events: Sequence[Event]) -> list[Finding]:
    """The findings of the tasks over chunk files; `annotated` as those of an audit are."""
    edges = [0, len(events) // 3, len(events) // 2, len(events)]
    with tempfile.TemporaryDirectory(prefix="seriatim-") as name:
        folder = Path(name)
        made = [
            chunks.write_chunk(
                folder, f"{a}.parquet", columns.placed(table.columns(list(events[a:b])), a)
            )
            for a, b in pairwise(edges)
            if b > a
        ]
        statistics = RunStatistics("run", len(events))
        unit = chunks.Unit("run", [], {"run": made}, [], [], [statistics])
        chunks.write_manifest(folder, chunks.Manifest([unit]))
        return audit_chunks(Inline(2), folder, BLACKBOX, measure=False).findings


def by_one_pass(events: Sequence[Event]) -> list[Finding] | None:
    """The findings of one pass over a file of Parquet; None if it has to be read row by row."""
    with tempfile.TemporaryDirectory(prefix="seriatim-") as name:
        path = Path(name) / "h.parquet"
        rec, clk = (max((getattr(e, name) for e in events), default="") for name in ("rec", "clk"))
        head = Header(run="run", rec=rec, clk=clk, params={"complete": True})
        write_history(path, events, head)
        try:
            threads = 1 + len(events) % one_pass.MOST
            found = one_pass.judged(plan([path]).runs[0], BLACKBOX, threads=threads).findings
        except columns.RowByRow:
            return None
    return found


def bare(findings: Sequence[Finding]) -> list[Finding]:
    """The same with witnesses that lack what a reader adds from the header."""
    of = [[_change(e, run="", rec="", clk="") for e in f.witness] for f in findings]
    return [msgspec.structs.replace(f, witness=w) for f, w in zip(findings, of, strict=True)]


def by_stream(events: Sequence[Event], cuts: Sequence[int]) -> list[Finding] | None:
    """The findings of a stream by columns that is cut there; None if it goes on row by row."""
    path = Path("state")
    with tempfile.TemporaryDirectory(prefix="seriatim-") as name:
        judged = RunColumns("run", BLACKBOX, Path(name), "part")
        for a, b in pairwise([0, *cuts, len(events)]):
            if b == a:
                continue
            if not judged.take(judged.keep(table.columns(list(events[a:b])))):
                return None
            judged.findings()  # changes nothing of what follows
            saved = decoded(path, encoded(judged.state()), SavedColumns, "")
            judged = RunColumns("run", BLACKBOX, Path(name), "part")
            judged.restore(saved, path, "")
        return judged.findings()


def streamed(
    events: Sequence[Event], expected: Sequence[Finding]
) -> tuple[list[Finding], list[Finding]]:
    """The findings of a stream, on a part of the history and on all of it, and those that it should have."""
    chance = random.Random(len(events))
    cuts = sorted(chance.sample(range(len(events) + 1), min(3, len(events))))
    found: list[Finding] = []
    wanted: list[Finding] = []
    for n, of in ((cuts[-1] if cuts else 0, None), (len(events), expected)):
        judged = by_stream(events[:n], [c for c in cuts if c < n]) if n else None
        if judged is not None:
            of = by_rows(events[:n]) if of is None else of
            found += judged
            gaps = sum(e.ev == GAP for e in events[:n])
            counted = RunStatistics("run", gaps=gaps)
            wanted += [annotated(p, f, counted) for p, f in zip(BLACKBOX, of, strict=True)]
    return found, wanted


def differences(events: Sequence[Event], chunked: bool, violated: Counter[str]) -> list[str]:
    """In which properties which way differs on a history; counts what the row-based forms report."""
    expected = by_rows(events)
    violated.update(f.property for f in expected if f.verdict is Verdict.VIOLATED)
    ways: list[tuple[str, Callable[[Sequence[Event]], list[Finding]], list[Finding]]] = [
        ("columns", judge, expected)
    ]
    if chunked:
        of = [
            annotated(p, f, RunStatistics("run")) for p, f in zip(BLACKBOX, expected, strict=True)
        ]
        ways.append(("chunks", by_chunks, of))
        passed = by_one_pass(events)
        if passed is not None:
            ways.append(("passes", lambda _: bare(passed), bare(of)))
        found, wanted = streamed(events, expected)
        ways.append(("streams", lambda _: found, wanted))
    return [
        f"{way} differ in {f.property}: {f.verdict} {f.n_tested} {f.n_untestable} "
        f"{f.n_violations}, and by rows {e.verdict} {e.n_tested} {e.n_untestable} {e.n_violations}"
        for way, judged, wanted in ways
        for f, e in zip(judged(events), wanted, strict=True)
        if f != e
    ]


def main(arguments: list[str]) -> int:
    """Compare on so many histories; returns 1 if any differ, and names them."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.crosscheck.columnar",
        description="Compare columnar with row-based judging on mutated histories.",
    )
    parser.add_argument("--histories", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first history")
    parser.add_argument(
        "--chunks",
        type=int,
        default=5,
        metavar="K",
        help="every K-th also as chunk files, in one pass and as a stream",
    )
    chosen = parser.parse_args(arguments)
    chunks.SLICE = chunks.WHOLE = 10  # so that a few events are worth a task
    chunks.TOGETHER, one_pass.LENGTH = 40, 50  # and several parts and batches
    violated: Counter[str] = Counter()
    wrong: list[str] = []
    for n in range(chosen.histories):
        seed = chosen.seed + n
        found = differences(history(seed), n % chosen.chunks == 0, violated)
        wrong += [f"seed {seed}: {text}" for text in found]
        if (n + 1) % 500 == 0:
            print(f"{n + 1} histories, {len(wrong)} differences", file=sys.stderr, flush=True)
    print(*wrong, sep="\n")
    print(f"{chosen.histories} histories, {len(wrong)} differences; violated in:")
    print(", ".join(f"{p.id} {violated[p.id]}" for p in BLACKBOX))
    idle = [p.id for p in BLACKBOX if not violated[p.id]]
    if idle:
        print(f"never violated, so hardly compared: {', '.join(idle)}; judge more histories")
    return 1 if wrong or idle else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
