"""What was measured, as tables in the terminal and as one page with plots."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from seriatim_workshop.bench.growth import fit
from seriatim_workshop.bench.measure import OUT, BenchRow, Measured, Series


def number(value: float) -> str:
    """A number with three significant digits, or with thousands separated."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Seconds in a readable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.1e} s"


def memory(size: float) -> str:
    """Bytes as MiB."""
    return f"{size / 2**20:,.0f} MiB"


def verdict_of(part: Measured, row: BenchRow) -> str:
    """The verdict, shortly."""
    verdict = row.verdict.split(":")[0]
    if row.disturbed:
        verdict += ", disturbed"
    return verdict


def count(row: BenchRow) -> str:
    """How many executions or states; + if the time was over before the end."""
    return "" if row.count is None else f"{row.count:,}{'' if row.seconds else '+'}"


def factor(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The ratio, round by round; empty if one of us has no number for each round."""
    if not theirs or len(ours) != len(theirs):
        return ""
    ratio = Series(ours).over(Series(theirs))
    low, high = min(ratio.values), max(ratio.values)
    around = f" ({low:.2g} to {high:.2g})" if len(ratio.values) > 1 else ""
    return f"{ratio.median:.3g}{around}"


def faster(part: Measured, row: BenchRow) -> str:
    """How many times our rate is theirs, if both count the same thing."""
    ours = part.row(row.task, part.us)
    if ours is None or row.who == part.us or row.unit != ours.unit:
        return ""
    return factor(ours.rate, row.rate)


def sooner(part: Measured, row: BenchRow) -> str:
    """How many times as long they took to the end as we did."""
    ours = part.row(row.task, part.us)
    return "" if ours is None or row.who == part.us else factor(row.seconds, ours.seconds)


COLUMNS = (
    "task",
    "who",
    "verdict",
    "a second",
    "our rate, times",
    "count",
    "time",
    "their time, times",
    "memory",
)


def lines(part: Measured) -> list[tuple[str, ...]]:
    """The part as rows of `COLUMNS`; a task is named in its first row."""
    made: list[tuple[str, ...]] = []
    for task in part.tasks:
        named = task
        for who in part.everybody:
            row = part.row(task, who)
            if row is None:
                continue
            made.append(
                (
                    named,
                    who,
                    verdict_of(part, row),
                    f"{number(Series(row.rate).median)} {row.unit}" if row.rate else "",
                    faster(part, row),
                    count(row),
                    duration(Series(row.seconds).median) if row.seconds else "",
                    sooner(part, row),
                    memory(max(row.memory)) if row.memory else "",
                )
            )
            named = ""
    return made


def columns(made: Sequence[tuple[str, ...]]) -> list[int]:
    """Those in which anything stands."""
    return [n for n in range(len(COLUMNS)) if any(row[n] for row in made)]


def table(part: Measured) -> Table:
    """The part as a table for the terminal."""
    drawn = Table(title=f"{part.title} ({part.date})")
    made = lines(part)
    shown = columns(made)
    for n in shown:
        drawn.add_column(COLUMNS[n], justify="left" if n < 3 else "right")
    for n, row in enumerate(made):
        last = n + 1 == len(made) or bool(made[n + 1][0])
        drawn.add_row(*(row[k] for k in shown), end_section=last)
    return drawn


def growths(part: Measured) -> list[str]:
    """How the time and the memory of each grow with the size of its tasks, where there are three sizes or more."""
    found = []
    for who in part.everybody:
        mine = [(r.size, r) for r in part.rows if r.who == who and r.size and r.seconds]
        if len({size for size, _ in mine}) >= 3:
            sizes = [size for size, _ in mine]
            time = fit(sizes, [Series(r.seconds).median for _, r in mine])
            found.append(f"time of {who}: {time}")
            if all(r.memory for _, r in mine):
                used = fit(sizes, [max(r.memory) for _, r in mine])
                found.append(f"memory of {who}: {used}")
    return found


def text(part: Measured, console: Console) -> None:
    """Print the part: table, versions, growth, notes and what was skipped."""
    console.print(table(part))
    console.print(", ".join(f"{w} {v}" for w, v in part.versions.items()), highlight=False)
    for growth in growths(part):
        console.print(growth, markup=False, highlight=False)
    for note in part.notes:
        console.print(note, markup=False, highlight=False)
    for who, why in part.skipped.items():
        console.print(f"skipped {who}: {why}", markup=False, highlight=False)
    console.print(f"{part.machine}; {part.rounds} rounds", markup=False, highlight=False)


def page(parts: Sequence[Measured]) -> Path:
    """All parts on one page that needs no network."""
    body = []
    for part in parts:
        made = lines(part)
        shown = columns(made)
        head = "".join(f"<th>{COLUMNS[n]}</th>" for n in shown)
        rows = [
            "<tr>" + "".join(f"<td>{html.escape(row[n])}</td>" for n in shown) + "</tr>"
            for row in made
        ]
        notes = [", ".join(f"{w} {v}" for w, v in part.versions.items())]
        notes += growths(part)
        notes += part.notes
        notes += [f"skipped {w}: {why}" for w, why in part.skipped.items()]
        notes.append(f"{part.machine}; {part.rounds} rounds, {part.date}; made by `{part.command}`")
        body.append(
            f"<section><h2>{html.escape(part.title)}</h2>{plot(part)}"
            f"<div class=wide><table><tr>{head}</tr>{''.join(rows)}</table></div>"
            + "".join(f"<p>{html.escape(s)}</p>" for s in notes)
            + "</section>"
        )
    OUT.mkdir(parents=True, exist_ok=True)
    file = OUT / "index.html"
    file.write_text(PAGE.replace("BODY", "".join(body)), encoding="utf-8")
    return file


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>seriatim: side by side</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .85rem }
td, th { border-top: 1px solid #8884; padding: .2rem .6rem; text-align: right }
td:nth-child(-n+3), th:nth-child(-n+3) { text-align: left } svg { max-width: 100%; height: auto; background: #fff }
</style>
<h1>Side by side</h1>
<p>Medians of several rounds in one run on one machine; ratios are taken round by round,
with their smallest and largest. A series is called disturbed if its spread exceeds half of its median.</p>
BODY
</html>
"""


def plot(part: Measured) -> str:
    """Times over sizes where tasks have sizes, else bars of rates; empty without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return ""
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4.2))
    sized = [r for r in part.rows if r.size and r.seconds]
    if sized:
        for who in part.everybody:
            mine = sorted(
                (r.size, Series(r.seconds).median) for r in sized if r.who == who and r.size
            )
            if mine:
                axes.loglog(*zip(*mine, strict=True), marker="o", label=who)
        axes.set_xlabel("size")
        axes.set_ylabel("seconds")
    else:
        tasks = [
            t
            for t in part.tasks
            if any(r.task == t and len(r.rate) == part.rounds for r in part.rows)
        ]
        width = 0.8 / max(1, len(part.everybody))
        for n, who in enumerate(part.everybody):
            at, high = [], []
            for k, task in enumerate(tasks):
                row = part.row(task, who)
                if row is not None and row.rate:
                    at.append(k + n * width)
                    high.append(Series(row.rate).median)
            axes.bar(at, high, width, label=who)
        axes.set_xticks(
            [k + 0.4 for k in range(len(tasks))], tasks, rotation=20, ha="right", fontsize=8
        )
        axes.set_yscale("log")
        axes.set_ylabel("a second")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    drawn = out.getvalue()
    return drawn[drawn.index("<svg") :]
