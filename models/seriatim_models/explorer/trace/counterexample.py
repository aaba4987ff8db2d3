"""A schedule that breaks a property: its steps, its replay token, and how people read it (one column a thread)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html import escape
from importlib.metadata import entry_points
from typing import Any

from seriatim_models.explorer.model.world import Record

Schedule = list[tuple[int, int]]
"""The steps of an execution: (number of the thread in order of creation, alternative)."""

NARROW = 14
"""No column is narrower."""


@dataclass(frozen=True)
class Step:
    """One step as it happened."""

    n: int
    """From 1."""
    thread: str
    op: str
    result: str
    preempts: bool
    """Whether another thread was interrupted that could have gone on."""
    records: tuple[Record, ...]
    place: tuple[str, int, str] | None = None
    """File, line and function of the program's own code in which it is; None of an alarm."""

    def __str__(self) -> str:
        return f"{self.op} -> {self.result}" if self.result else self.op


@dataclass(frozen=True)
class Violation:
    """Something wrong in one execution.

    `kind` is ``property`` (a check failed), ``error`` (the program raised), ``data race`` (see `model.attributes`)
    or an end of `termination.STUCK`.
    """

    kind: str
    what: object

    def __str__(self) -> str:
        if self.kind == "property":
            return str(self.what)
        return f"{self.kind}: {self.what}"

    @property
    def key(self) -> str:
        """What two violations of the same mistake share: their kind, and an id at the beginning of the message."""
        words = str(self.what).split(None, 1)
        if self.kind in ("property", "data race") and words:
            return f"{self.kind} {words[0].rstrip(':')}"
        return self.kind


@dataclass(frozen=True)
class PointOfNoReturn:
    """What is known of the prefixes of a counterexample, by their number of steps."""

    step: int
    """After this step every continuation is wrong. 0: every execution of the program is."""
    continuations: int
    """How many continuations the prefix has, each of a trace of its own; all were tried."""
    open: int
    """After this step there is still a right continuation; -1 if not even at the beginning."""

    @property
    def decided(self) -> bool:
        """Whether no step lies between `open` and `step`, so that `step` is the earliest."""
        return self.open == self.step - 1

    def __str__(self) -> str:
        n = self.continuations
        if self.step == 0:
            tried = "1 trace was tried" if n == 1 else f"{n} traces were tried"
            return f"Every schedule of this program is wrong ({tried})."
        which = "the only continuation" if n == 1 else f"each of the {n} continuations"
        doomed = f"After step {self.step} {which} is wrong"
        if self.decided:
            return f"{doomed}; before it there was one that is right."
        since = f", at the earliest after step {self.open + 1}" if self.open >= 0 else ""
        return f"{doomed}; whether that was so earlier{since}, was not decided within the budget."


def undecided() -> None:
    """Nothing: what `Counterexample.lost` returns where the program cannot be run again."""


@dataclass(frozen=True, repr=False)
class Counterexample:
    """One execution in which something is wrong."""

    program: str
    token: str
    schedule: Schedule
    events: list[Step]
    violations: list[Violation]
    end: str
    threads: list[str]
    records: list[Record]
    period: int = 0
    """How many of the last steps repeat for ever, if they do."""
    command: str = ""
    """How to replay it, where there is a better way than `replay` knows."""
    lost: Callable[[], PointOfNoReturn | None] = field(default=undecided, compare=False, repr=False)
    """Find the step after which every continuation is wrong; takes up to some hundred executions of the program."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process can be sent: all but the program."""
        return {**self.__dict__, "lost": undecided}

    @property
    def replay(self) -> str:
        """The line that replays it."""
        return self.command or f"explore(program, Replay({self.token!r}))"

    @property
    def preemptions(self) -> int:
        """How many steps interrupt a thread that could have gone on."""
        return sum(step.preempts for step in self.events)

    @property
    def what(self) -> str:
        """The first thing that is wrong."""
        return str(self.violations[0]) if self.violations else ""

    def text(self, width: int = 120) -> str:
        """Columns, one a thread, and the line that replays it."""
        return _text(self, width)

    def brief(self, width: int, again: str, *, traceback: str = "", verbose: bool = False) -> str:
        """What a failing test shows: as `seriatim check`, the steps that matter in columns, and the command `again`.

        It is made by the entry point `text` of the group `seriatim.pages`; where that is not installed, it is `text`.
        """
        for shown in entry_points(group="seriatim.pages", name="text"):
            return str(shown.load()(self, width, again, traceback, verbose))
        return "\n\n".join(filter(None, (replace(self, command=again).text(width), traceback)))

    def html(self) -> str:
        """A page that needs nothing else: steps through the schedule, with the source and the state at each step.

        It is made by the entry point `counterexample` of the group `seriatim.pages`, which comes with the package;
        where that is not installed, the page is the table of `_repr_html_`.
        """
        for page in entry_points(group="seriatim.pages", name="counterexample"):
            return str(page.load()(self))
        name = escape(self.program or "program")
        return (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title><style>'
            "body{font:15px/1.4 system-ui,sans-serif;margin:2em;max-width:80em}"
            f"</style><h1>{name}</h1>{_html(self)}</html>"
        )

    def __repr__(self) -> str:
        name = self.program or "program"
        return f"<Counterexample of {name}: {self.what}; {len(self.events)} steps, {self.replay}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the columns of `text`, as a table whose style stays its own."""
        return _html(self)

    def __str__(self) -> str:
        return self.text()


def _text(case: Counterexample, width: int = 120) -> str:
    """The counterexample as a table in plain text."""
    lines: list[str] = []
    for violation in case.violations:
        lines += _wrapped(str(violation), width)
    lines += [_headline(case), ""]
    threads = _columns(case)
    number = len(str(len(case.events)))
    cells: list[tuple[str, int, str]] = []
    events = case.events
    if case.period and len(events) > 4 * case.period + 8:
        shown = max(len(events) % case.period + case.period, 8)
        lines[-1] = (
            f"the last {case.period} steps repeat; {len(events) - shown} steps are not shown"
        )
        lines.append("")
        events = events[:shown]
    for step in events:
        column = threads.index(_column(step))
        cells.append((str(step.n), column, str(step)))
        cells += [("", column, "  * " + _record(r.ev, r.args)) for r in step.records]
    room = max(NARROW, (width - number - 1) // max(len(threads), 1) - 3)
    widths = [
        min(room, max([len(name), *(len(c[2]) for c in cells if c[1] == k)]))
        for k, name in enumerate(threads)
    ]
    lines.append(_row(" " * number, threads, widths).rstrip())
    lines.append("-" * number + "-+-" + "-+-".join("-" * w for w in widths))
    for mark, at, text in cells:
        for k, part in enumerate(_wrapped(text, widths[at])):
            row = [""] * len(threads)
            row[at] = part
            lines.append(_row((mark if k == 0 else "").rjust(number), row, widths).rstrip())
    lines.append("")
    lines.append(f"replay: {case.replay}")
    return "\n".join(lines)


def _headline(case: Counterexample) -> str:
    steps, preemptions = len(case.events), case.preemptions
    return (
        f"in {case.program or 'program'}, {steps} step{'s' * (steps != 1)} "
        f"with {preemptions} preemption{'s' * (preemptions != 1)}, end: {case.end}"
    )


def _columns(case: Counterexample) -> list[str]:
    threads = list(case.threads)
    for step in case.events:
        if _column(step) not in threads:
            threads.append(_column(step))
    return threads


def _column(step: Step) -> str:
    return step.thread.split("'s alarm ")[0]


def _record(ev: str, args: dict[str, object]) -> str:
    return " ".join([ev, *(f"{k}={v}" for k, v in args.items())])


def _row(mark: str, cells: list[str], widths: list[int]) -> str:
    return mark + " | " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True))


def _wrapped(text: str, width: int) -> list[str]:
    parts: list[str] = []
    while len(text) > width:
        cut = text.rfind(" ", 1, width + 1)
        cut = cut if cut > width // 2 else width
        parts.append(text[:cut].rstrip())
        text = "    " + text[cut:].lstrip() if width > NARROW else text[cut:].lstrip()
    return [*parts, text]


def _html(case: Counterexample) -> str:
    """The counterexample as an element of a page."""
    threads = _columns(case)
    rows: list[str] = []
    for step in case.events:
        column = threads.index(_column(step))
        text = escape(step.op) + (f" <b>{escape(step.result)}</b>" if step.result else "")
        text += "".join(f"<br><i>{escape(_record(r.ev, r.args))}</i>" for r in step.records)
        cells = "".join(f"<td>{text if k == column else ''}</td>" for k in range(len(threads)))
        kind = ' class="preempts"' if step.preempts else ""
        rows.append(f"<tr{kind}><th>{step.n}</th>{cells}</tr>")
    head = "".join(f"<th>{escape(name)}</th>" for name in threads)
    wrong = "".join(f"<li>{escape(str(v))}</li>" for v in case.violations)
    return (
        "<style>.seriatim table{border-collapse:collapse}"
        ".seriatim td,.seriatim th{padding:.2em .8em;border-left:1px solid #ccc;"
        "text-align:left;vertical-align:top;font-family:ui-monospace,monospace;font-size:13px}"
        ".seriatim tr.preempts td,.seriatim tr.preempts th{border-top:2px solid #c60}"
        ".seriatim i{color:#666}.seriatim code{word-break:break-all}</style>"
        f'<div class="seriatim"><p>{escape(_headline(case))}</p><ul>{wrong}</ul>'
        f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        "<p>A line above a step marks a preemption.</p>"
        f"<p>Replay: <code>{escape(case.replay)}</code></p></div>"
    )
