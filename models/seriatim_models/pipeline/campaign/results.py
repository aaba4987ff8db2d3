"""The results of a campaign: distinct bugs, coverage and three tables.

    results.parquet      one row an item: verdict and cost
    bugs.parquet         one row a distinct bug: what, where, its canonical trace, the shortest token, how often found
    coverage.parquet     one row a program and mutant: distinct traces, executions, seconds

All are of schema version `SCHEMA`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from seriatim_models.files import whole_file
from seriatim_models.pipeline.campaign.items import ItemResult, SearchItem

SCHEMA = "seriatim-campaign/2"

_TEXT, _INT, _REAL = pa.string(), pa.int64(), pa.float64()
TABLES = {
    "results": pa.schema(
        [
            ("id", _TEXT), ("program", _TEXT), ("mutant", _TEXT), ("strategy", _TEXT), ("seed", _INT),
            ("executions", _INT), ("max_steps", _INT), ("preemptions", _INT), ("prefix", _TEXT), ("depth", _INT),
            ("verdict", _TEXT), ("why", _TEXT), ("complete", _INT), ("blocked", _INT), ("cut", _INT),
            ("steps", _INT), ("traces", _INT), ("seconds", _REAL), ("processor", _REAL),
            ("bug", _TEXT), ("token", _TEXT), ("trace", _TEXT),
        ]
    ),
    "bugs": pa.schema(
        [
            ("program", _TEXT), ("mutant", _TEXT), ("bug", _TEXT), ("trace", _TEXT), ("token", _TEXT),
            ("found", _INT),
        ]
    ),
    "coverage": pa.schema(
        [
            ("program", _TEXT), ("mutant", _TEXT), ("verdict", _TEXT), ("exhausted", pa.bool_()),
            ("items", _INT), ("executions", _INT), ("traces", _INT), ("seconds", _REAL), ("processor", _REAL),
        ]
    ),
}  # fmt: skip
"""`seconds` are those of a clock, `processor` those of a processor. In `coverage`, `exhausted` says whether the traces
are all there are."""


BugTokens = dict[tuple[str, str, str, str], list[str]]
"""Tokens by program, mutant, bug and canonical trace."""


class Coverage(msgspec.Struct, frozen=True):
    """Which traces of a program, or of a mutant in it, were seen."""

    verdict: str
    exhausted: bool
    """Whether `traces` are all there are."""
    traces: int


class CampaignResult(msgspec.Struct):
    """The results of a campaign."""

    results: list[ItemResult]
    total: int
    seconds: float

    @property
    def finished(self) -> bool:
        """Whether every item has a result."""
        return len(self.results) == self.total

    def bugs(self) -> BugTokens:
        """Distinct bugs."""
        return distinct_bugs(self.results)

    def coverage(self) -> dict[tuple[str, str], Coverage]:
        """Which traces were seen, by program and mutant. Traces are counted from the names that the results carry."""
        of: dict[tuple[str, str], list[ItemResult]] = defaultdict(list)
        for o in self.results:
            of[o.item.program, o.item.mutant].append(o)
        out = {}
        for subject, its in of.items():
            verdicts = {o.verdict for o in its}
            names: set[bytes] = set()
            for o in its:
                names.update(o.names[k : k + 16] for k in range(0, len(o.names), 16))
            out[subject] = Coverage(
                "violated" if any(o.bugs for o in its) else "ok" if verdicts == {"ok"} else "inconclusive",
                any(o.item.strategy == "dpor" and o.item.preemptions is None and o.verdict == "ok" for o in its),
                len(names),
            )  # fmt: skip
        return out


def distinct_bugs(results: Iterable[ItemResult]) -> BugTokens:
    """Distinct bugs: two schedules of one trace are one."""
    out: BugTokens = defaultdict(list)
    for o in results:
        for b in o.bugs:
            out[o.item.program, o.item.mutant, b.bug, b.trace].append(b.token)
    return dict(out)


def shortest(tokens: Collection[str]) -> str:
    """The token to show."""
    return min(tokens, key=lambda t: (len(t), t))


def write_tables(
    folder: Path, item_results: Sequence[ItemResult], seen: dict[tuple[str, str], Coverage]
) -> None:
    """Write the three tables into a folder; `seen` is the coverage."""
    of_item = [n for n in TABLES["results"].names if n in SearchItem.__struct_fields__]
    of_result = [n for n in TABLES["results"].names if n in ItemResult.__struct_fields__]
    results, of = [], defaultdict(list)
    for o in item_results:
        row: dict[str, Any] = {n: getattr(o.item, n) for n in of_item}  # Any: of a row's columns
        row |= {n: getattr(o, n) for n in of_result}
        if o.bugs:
            row |= {n: getattr(o.bugs[0], n) for n in ("bug", "token", "trace")}
        results.append(row)
        of[o.item.program, o.item.mutant].append(o)
    found = [
        {
            "program": program, "mutant": mutant, "bug": bug, "trace": trace,
            "token": shortest(tokens), "found": len(tokens),
        }
        for (program, mutant, bug, trace), tokens in sorted(distinct_bugs(item_results).items())
    ]  # fmt: skip
    coverage = [
        {
            "program": program, "mutant": mutant, "items": len(mine),
            "executions": sum(o.executions for o in mine),
            "seconds": sum(o.seconds for o in mine), "processor": sum(o.processor for o in mine),
            **msgspec.structs.asdict(seen[program, mutant]),
        }
        for (program, mutant), mine in sorted(of.items())
    ]  # fmt: skip
    for name, rows in (("results", results), ("bugs", found), ("coverage", coverage)):
        table = pa.Table.from_pylist(rows, TABLES[name].with_metadata({b"seriatim": SCHEMA}))
        with whole_file(folder / f"{name}.parquet", ours=True) as draft:
            pq.write_table(table, draft, compression="zstd")
