"""Reading in blocks against reading by line, on files that are drawn: the same report, chunk files and states.

    python -m seriatim_workshop.crosscheck.reading [--files N] [--seed N]

What is recorded is that of `crosscheck.columnar`. How it is written down is drawn too: which of run, recorder, clock
and level the header says, and which events say them as well, from some place on, here and there or nowhere; whether
connections and stamps are named; in how many parts; lines that are damaged, doubled, swapped or empty; and what its
recorder completed may be Parquet, which is taken by columns.
Each drawing is audited by the local engine as it is and event by event, and ingested in blocks, where they are clean,
by line, and part by part; a stream is given the parts one after the other. At the end it is printed how many were
clean, and in how many each property was violated.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pyarrow.parquet as pq

from seriatim_models.history import Event, Header, HistoryError, clean, table, write_history
from seriatim_models.history.clean import NotClean
from seriatim_models.history.event import GAP
from seriatim_models.history.reading import Reader
from seriatim_models.pipeline import AuditReport
from seriatim_models.pipeline.audit import columns, decoding, local
from seriatim_models.pipeline.audit.decoding import Decoded, DecodeTask, RecorderState
from seriatim_models.pipeline.audit.ingest import ingest
from seriatim_models.pipeline.audit.inline import Inline
from seriatim_models.pipeline.audit.runs import Plan, plan
from seriatim_models.pipeline.state_file import read_state
from seriatim_models.pipeline.stream.run_state import ArrivedFile, RunState
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_workshop.crosscheck.columnar import recorded

BLOCK = 2000
"""Bytes of a block: a dozen events."""
CLEAN = 0.2
"""The part of the drawings that must be read in blocks, so that enough is compared."""
ENOUGH = 20
"""Drawings of which so many can be expected to be clean."""
NAMES = {"run": "r", "rec": "a", "lvl": "api", "clk": "host"}
"""What the header may say for all events."""

_change = msgspec.structs.replace


def some_of(events: list[Event], chance: random.Random) -> set[int]:
    """Places of events that are drawn together: none, all, those from some place on, or here and there."""
    n = len(events)
    match chance.randrange(5):
        case 0 | 1:
            return set()
        case 2:
            return set(range(n))
        case 3:
            return set(range(chance.randrange(n), n))
        case _:
            return {k for k in range(n) if chance.random() < 0.3}


def levelled(bare: list[Event], events: list[Event], head: dict[str, Any]) -> list[Event]:
    """Events that say nothing of their level: each says that of what was recorded, or leaves it to the header."""
    levels = Counter(e.lvl for e in events)
    said = {*levels}
    if head.get("lvl"):  # of a scene that another kind of recorder saw
        said = {levels.most_common()[-1][0]} if len(levels) > 1 else set()
    return [
        _change(e, lvl=of.lvl if of.lvl in said else "") for e, of in zip(bare, events, strict=True)
    ]


def rewritten(events: list[Event], head: dict[str, Any], chance: random.Random) -> list[Event]:
    """The events, some of which say what the header does, or nothing of a connection or the time."""
    out = levelled([_change(e, **dict.fromkeys(NAMES, "")) for e in events], events, head)
    for name, value in NAMES.items():
        for k in some_of(out, chance) if head.get(name) or chance.random() < 0.2 else ():
            if not getattr(out[k], name):
                out[k] = _change(out[k], **{name: head.get(name) or value})
    if chance.random() < 0.2:
        for k in some_of(out, chance):
            if out[k].ch is not None and "open" not in out[k].ev and "close" not in out[k].ev:
                out[k] = _change(out[k], conn="")
    if chance.random() < 0.15:
        for k in some_of(out, chance):
            out[k] = _change(out[k], t=None)
    if chance.random() < 0.1:
        for k in some_of(out, chance):
            out[k] = _change(out[k], clk="other")
    return out


def spoilt(raw: bytes, chance: random.Random) -> bytes:
    """A file with one line that is not as it should be, or that stands elsewhere."""
    lines = raw.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            lines.insert(at, lines[at][: len(lines[at]) // 2] + b"\n")
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines.insert(at, b"\n")
        case _:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
    return b"".join(lines)


def draw(seed: int, folder: Path) -> None:
    """Write the files of a seed."""
    chance = random.Random(seed)
    first = chance.choice([0, 1, 1, 1, 7])
    raw = [e for e in recorded(seed) if e.ev != GAP] or [Event(i=0, ev="note")]
    head: dict[str, Any] = {n: v for n, v in NAMES.items() if chance.random() < 0.7}
    params = chance.choice([{}, {}, {}, {"whole": True}, {"complete": True}, {"complete": True}])
    kind = chance.choice(["jsonl", "parquet"]) if params.get("complete") else "jsonl"
    events = [_change(e, i=first + n) for n, e in enumerate(rewritten(raw, head, chance))]
    cuts = sorted(chance.choices(range(1, len(events) + 1), k=chance.choice([0, 0, 0, 1, 2])))
    for k, (a, b) in enumerate(zip([0, *cuts], [*cuts, len(events)], strict=True)):
        path = folder / f"{k}.{kind}"
        write_history(path, events[a:b], Header(**head, params=params))
        if kind == "jsonl" and chance.random() < 0.15:
            path.write_bytes(spoilt(path.read_bytes(), chance))


def audited(planned: Plan, columns: bool) -> AuditReport | str:
    """The local engine's report, by whichever way or event by event; or why it refuses."""
    try:
        if columns:
            return local.audit(planned, BLACKBOX)
        return local._one_by_one(planned, local._Runs(BLACKBOX, None, None), 1, False)
    except HistoryError as error:
        return str(error)


@contextmanager
def by_line() -> Iterator[None]:
    """Within: nothing is ingested in blocks, and no Parquet by columns."""

    def refuse(*_: object) -> None:
        raise NotClean("by line")

    with (
        patch.object(decoding, "_decode_clean", refuse),
        patch.object(columns, "header", lambda _: None),
    ):
        yield


def ingested(planned: Plan, folder: Path) -> object:
    """What an ingest leaves: chunks, rejected lines, states and counts; or why it refuses."""
    try:
        manifest = ingest(Inline(), planned, folder, slice_length=60)
    except HistoryError as error:
        return str(error)
    by_run: dict[str, list[dict[str, Any]]] = {}
    for run, of in manifest.runs().items():
        rows = [row for c in of for row in pq.read_table(folder / c.path).to_pylist()]
        by_run[run] = sorted(({**_BARE, **row} for row in rows), key=itemgetter("n"))
    all_of = {
        run: (any(c.lone for c in of), any(c.nameless for c in of))
        for run, of in manifest.runs().items()
    }
    rejected = [
        r for name in manifest.quarantine() for r in pq.read_table(folder / name).to_pylist()
    ]
    # Where the next part goes on is not kept of Parquet that is taken by columns.
    states = {
        u.run: read_state(folder / u.carry, "recorder", RecorderState, "")
        for u in manifest.units
        if u.carry and not u.recorders[0][0].path.endswith(".parquet")
    }
    counts = [(u.files, sorted(u.statistics, key=attrgetter("run"))) for u in manifest.units]
    return by_run, all_of, rejected, states, counts


def part_by_part(source: Path, folder: Path) -> object:
    """What ingests leave that are each given one part more; None of one part, or where a part by itself is refused."""
    parts = sorted(source.iterdir())
    found: object = None
    for n in range(1, len(parts) + 1) if len(parts) > 1 else ():
        try:
            found = ingested(plan(parts[:n]), folder)
        except HistoryError:
            return None
        if isinstance(found, str):
            return None
    return found


def streamed(planned: Plan, folder: Path) -> list[Finding] | None:
    """The findings of a stream that is given one part after the other, its state saved and loaded behind each; None for
    several runs or recorders.
    """
    if len(planned.runs) != 1 or len(planned.runs[0].recorders) != 1:
        return None
    (run,) = planned.runs
    folder.mkdir()
    state = RunState(run.run, BLACKBOX, folder, "part")
    for n, part in enumerate(run.recorders[0], 1):
        head = Reader(part.path, continues=part.continues).header
        final = n == len(run.recorders[0])
        state.take([ArrivedFile(part.path, head.rec, 0, 0, part.continues)], 0, 0, final)
        state.save(folder, str(n))
        state = RunState.load(folder, f"{n}.state", BLACKBOX)
    return state.summary.findings


_BARE = dict.fromkeys(table.FIELDS)
"""What chunk files leave out where it is empty throughout."""


class ComparedFiles:
    """What was drawn, and what differed."""

    def __init__(self) -> None:
        self.audited_in_blocks = self.ingested_in_blocks = self.streamed = 0
        self.violated: Counter[str] = Counter()
        self.wrong: list[str] = []

    def compare(self, seed: int) -> None:
        """Draw the files of a seed, and read them both ways."""
        with tempfile.TemporaryDirectory(prefix="seriatim-") as name:
            folder = Path(name)
            (folder / "in").mkdir()
            draw(seed, folder / "in")
            try:
                planned = plan([folder / "in"])
            except HistoryError:
                return
            with self._counting(local, "_by_columns", "audited_in_blocks"):
                found = audited(planned, columns=True)
            expected = audited(planned, columns=False)
            if not isinstance(expected, str):
                self.violated.update(
                    f.property for f in expected.findings if f.verdict is Verdict.VIOLATED
                )
            if found != expected:
                self.wrong.append(f"seed {seed}: the audits differ{different(found, expected)}")
            self._compare_stream(seed, planned, folder / "stream", expected)
            with self._counting(decoding, "_decode_clean", "ingested_in_blocks"):
                made = ingested(planned, folder / "blocks")
            with by_line():
                wanted = ingested(planned, folder / "lines")
            if made != wanted:
                self.wrong.append(f"seed {seed}: the chunk files, counts or states differ")
            if part_by_part(folder / "in", folder / "parts") not in (None, made):
                self.wrong.append(f"seed {seed}: ingested part by part they differ")

    def _compare_stream(
        self, seed: int, planned: Plan, folder: Path, expected: AuditReport | str
    ) -> None:
        if isinstance(expected, str) or len(expected.runs) != 1:
            return
        found = streamed(planned, folder)
        if found is None:
            return
        self.streamed += 1
        pairs = zip(found, expected.findings, strict=True)
        if of := [difference(f, e) for f, e in pairs if f != e]:
            self.wrong.append(f"seed {seed}: the stream differs in {'; '.join(of)}")

    @contextmanager
    def _counting(self, module: object, name: str, field: str) -> Iterator[None]:
        """Count the calls of a function that give something."""
        read: Callable[..., Decoded | DecodeTask | None] = getattr(module, name)

        def counted(*given: Any) -> object:
            made = read(*given)
            setattr(self, field, getattr(self, field) + (made is not None))
            return made

        with patch.object(module, name, counted):
            yield


def different(found: AuditReport | str, expected: AuditReport | str) -> str:
    """In which properties two reports differ."""
    if isinstance(found, str) or isinstance(expected, str):
        return f": {found if isinstance(found, str) else expected}"
    pairs = zip(found.findings, expected.findings, strict=False)
    of = [difference(f, e) for f, e in pairs if f != e]
    return f" in {'; '.join(of)}" if of else " in their counts"


def difference(found: Finding, expected: Finding) -> str:
    """In what two findings of a property differ."""
    f, e = found, expected
    return (
        f"{f.property} {f.verdict} {f.n_tested} {f.n_untestable} {f.n_violations}, "
        f"by rows {e.verdict} {e.n_tested} {e.n_untestable} {e.n_violations}"
    )


def main(arguments: list[str]) -> int:
    """Compare on so many drawings; returns 1 if any differ, and names them."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.crosscheck.reading",
        description="Compare reading in blocks with reading by line, on files that are drawn.",
    )
    parser.add_argument(
        "--files", type=int, default=500, metavar="N", help="how many drawings (500)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first one (0)")
    chosen = parser.parse_args(arguments)
    compared = ComparedFiles()
    with patch.object(clean, "BLOCK", BLOCK):
        for n in range(chosen.files):
            known = len(compared.wrong)
            compared.compare(chosen.seed + n)
            for text in compared.wrong[known:]:
                print(f"{text}; again: --files 1 --seed {chosen.seed + n}", file=sys.stderr)
            if (n + 1) % 100 == 0:
                print(
                    f"{n + 1} drawings, {len(compared.wrong)} differences",
                    file=sys.stderr,
                    flush=True,
                )
    print(*compared.wrong, sep="\n")
    print(
        f"{chosen.files} drawings, {compared.audited_in_blocks} runs audited and "
        f"{compared.ingested_in_blocks} ingested in blocks, {compared.streamed} streamed, "
        f"{len(compared.wrong)} differences; violated in:"
    )
    print(", ".join(f"{p.id} {compared.violated[p.id]}" for p in BLACKBOX))
    few = (
        chosen.files >= ENOUGH
        and min(compared.audited_in_blocks, compared.ingested_in_blocks) < CLEAN * chosen.files
    )
    if few:
        print(f"fewer than {CLEAN:.0%} were clean, so little was compared")
    return 1 if compared.wrong or few else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
