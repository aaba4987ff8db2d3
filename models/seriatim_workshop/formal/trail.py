"""A counterexample of Spin's in the explorer's columns: one a process, time downwards.

A step is shown by the comment that stands behind it in the model, with the variables that it changed.
Steps that are neither commented nor change anything shared are left out, and so is the beginning of a long search.
"""

from __future__ import annotations

import re

from seriatim_models.explorer import Counterexample, Step, Violation
from seriatim_workshop.formal.manifest import SpinRun

STEP = re.compile(
    r"^\s*(\d+):\s+proc\s+(\d+) \(([^:)]*):?[^)]*\) \S+?:(\d+) \(state \d+\)\s+\[(.*)\]$"
)
CHANGE = re.compile(r"^\t\t(\S+) = (.+)$")
CYCLE = "START OF CYCLE"
SHOWN = 200
"""Of a cycle that was found deep down, so many steps; shortest counterexamples are shorter than that."""


def comments(source: str) -> dict[int, str]:
    """What stands behind each line of a model; for a block over several lines, what stands behind its end."""
    lines = source.splitlines()
    text: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        if (found := re.search(r"\S.*/\* (.*) \*/\s*$", line)) is not None:
            text[number] = found[1]
    for number, line in enumerate(lines, 1):
        if not re.search(r"\b(atomic|d_step) \{", line):
            continue
        depth = 0
        for last in range(number, len(lines) + 1):
            code = lines[last - 1].split("/*")[0]
            depth += code.count("{") - code.count("}")
            if depth <= 0:
                if last in text:
                    for inner in range(number, last):
                        text.setdefault(inner, text[last])
                break
    return text


def readable(run: SpinRun, source: str, replayed: str) -> Counterexample:
    """The trail as a counterexample of the explorer's kind."""
    behind = comments(source)
    values: dict[str, str] = {}
    steps: list[list[str]] = []  # number, process, what, changes
    names: dict[str, set[str]] = {}
    cycle: int | None = None
    for line in replayed.splitlines():
        if CYCLE in line:
            cycle = len(steps)
        elif (step := STEP.match(line)) is not None:
            number, process, name, at, statement = step.groups()
            if name.startswith(":init") or name == "":
                name = "init"
            who = f"{name} {process}"
            names.setdefault(name, set()).add(who)
            what = behind.get(int(at), "")
            same = steps and steps[-1][:2] == [number, who]
            goes_on = steps and what and steps[-1][1:4] == [who, what, ""]  # the rest of an atomic
            if same or goes_on:
                steps[-1][2] = steps[-1][2] or what
                steps[-1][4] = steps[-1][4] or statement
            else:
                steps.append([number, who, what, "", statement])
        elif steps and (change := CHANGE.match(line)) is not None:
            name, value = change.groups()
            if values.get(name) != value:
                values[name] = value
                steps[-1][3] += ("; " if steps[-1][3] else "") + f"{name} = {value}"
        elif "#processes" in line:
            break
    short = {w: n for n, ws in names.items() for w in ws if len(ws) == 1}
    events: list[Step] = []
    for at, (_, who, what, changes, statement) in enumerate(steps):
        if cycle is not None and at == cycle:
            events.append(
                Step(len(events) + 1, short.get(who, who), "from here for ever:", "", False, ())
            )
        if (what or changes) and not who.startswith("init"):
            name = short.get(who, who)
            preempts = bool(events) and events[-1].thread != name
            events.append(Step(len(events) + 1, name, what or statement, changes, preempts, ()))
    order = sorted({who for _, who, *_ in steps if not who.startswith("init")})
    threads = [short.get(who, who) for who in order]
    return Counterexample(
        program=run.name,
        token="",
        schedule=[],
        events=events[-SHOWN:],
        violations=[Violation("property", f"{run.property}: {run.says}")],
        end="a cycle" if cycle is not None else "as above",
        threads=[name for name in threads if any(e.thread == name for e in events)],
        records=[],
        command=f"python -m seriatim_workshop.formal.spin --show {run.name}",
    )
