"""Generated programs that wait in loops: each against the same program with its loops unfolded some rounds.

A program is the text of a module with one test function, whose threads write shared places and wait for them in
`while` loops of the usual forms: with `pass`, with a sleep, with a lock taken and freed in each round, by asking for a
lock over and over, one loop inside another. In the unfolded program each loop has `ROUNDS` rounds, after which its
thread gives up and waits for ever.

- The executions of both that come to their end must have the same outcomes: a round that was left out would have shown
  one more, and a thread that has stopped too early one less.
- The looping program has an execution in which nothing can happen any more exactly if the unfolded one has one in
  which what each of those who gave up waits for does not hold at the end.

The unfolded program is searched with every access a step, and, if it is small, by all its schedules one by one.

`python -m seriatim_workshop.crosscheck.own --kind loops` prints what differs, and the program.
"""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seriatim_models.explorer.model.world import World
from seriatim_models.explorer.python.execution import Search
from seriatim_models.explorer.trace.termination import STUCK
from seriatim_workshop.crosscheck.own_code import Agreement, Generated, result_of

ROUNDS = 2
"""Rounds of a loop in the unfolded program: one that has changed nothing, and one more."""

HEAD = """
import queue
import threading
import time

GAVE_UP = []


class Thing:
    def __init__(self):
        self.x = 0
        self.y = 0

    def high(self, k):
        return self.x >= k

"""

WRITES = (
    "o.x = {k}", "o.x += 1", "o.y = {k}", "lst.append({k})", "with lock:\n    o.y = {k}", "ev.set()", "q.put({k})",
    "d[{k}] = 1", "done = True", "with lock:\n    o.x += 1\n    o.y = o.x",
    "with cond:\n    o.y = 1\n    cond.notify()", "o.x = 0", "lst.clear()", "ev.clear()",
)  # fmt: skip
READS = (
    "r.append(o.x)", "r.append(o.y)", "r.append(len(lst))", "r.append(done)", "r.append(q.qsize())",
    "with lock:\n    r.append(o.y)", "r.append(sorted(d))",
    "if lock.acquire(blocking=False):\n    lock.release()\nelse:\n    r.append('busy')",
)  # fmt: skip
AWAITED = (
    # What a loop waits for, and the same when it is over, where nothing is under control.
    ("o.x == {k}", ""), ("o.x >= {k}", ""), ("o.high({k})", ""), ("o.y", ""), ("o.x and o.y", ""), ("lst", ""),
    ("len(lst) > 1", ""), ("{k} in d", ""), ("done", ""), ("ev.is_set()", "ev._flag"), ("not q.empty()", "q.queue"),
    ("any(e == {k} for e in lst)", ""), ("not lock.locked()", "lock.value is None"),
    ("o.x == 1 or done", ""),
)  # fmt: skip
LOOPS = (
    ("pass",), ("time.sleep(0.01)",), ("time.sleep(0)", "r.append('round') if False else None"),
)  # fmt: skip


@dataclass
class GeneratedLoops(Generated):
    """A generated program, and the same with its loops unfolded."""

    unfolded: str = ""


class Writer:
    """Writes the two texts beside each other."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def filled(self, text: str, k: int | None = None) -> str:
        """A line with its small number."""
        return text.replace("{k}", str(self.chance.randint(1, 2) if k is None else k))

    def wait(self) -> tuple[str, str]:
        """A loop that waits, and its rounds unfolded."""
        chance = self.chance
        k = chance.randint(1, 2)
        awaited, afterwards = (self.filled(form, k) for form in chance.choice(AWAITED))
        afterwards = afterwards or awaited
        body = textwrap.indent("\n".join(chance.choice(LOOPS)), "    ")
        gives_up = f"    GAVE_UP.append(lambda: {afterwards})\n    never.wait()"
        form = chance.choice(("while", "while", "break", "locked", "try", "bound", "inner"))
        if form == "try":
            afterwards = "lock.value is None"
            gives_up = f"    GAVE_UP.append(lambda: {afterwards})\n    never.wait()"
            inside = self.filled(chance.choice(WRITES[:4]))
            after = f"\n{inside}\nlock.release()"
            test = "lock.acquire(blocking=False)"
            return (
                f"while not {test}:\n{body}{after}",
                f"for _ in range({ROUNDS}):\n    if {test}:\n        break\n{body}\nelse:\n{gives_up}{after}",
            )
        leaves = f"    if {awaited}:\n        break\n"
        if form == "locked":
            leaves = f"    with lock:\n        if {awaited}:\n            break\n"
        elif form == "bound":
            leaves = f"    seen = {awaited}\n    if seen:\n        break\n"
        elif form == "inner":  # one loop inside another
            leaves = f"    while not o.x:\n        pass\n{leaves}"
        if form == "while":
            return (
                f"while not ({awaited}):\n{body}",
                f"for _ in range({ROUNDS}):\n{leaves}{body}\nelse:\n{gives_up}",
            )
        unfolded = leaves
        if form == "inner":
            stops = "        GAVE_UP.append(lambda: o.x)\n        never.wait()"
            unfolded = (
                f"    for _ in range({ROUNDS}):\n        if o.x:\n            break\n    else:\n{stops}\n"
                f"    if {awaited}:\n        break\n"
            )
        return (
            f"while True:\n{leaves}{body}",
            f"for _ in range({ROUNDS}):\n{unfolded}{body}\nelse:\n{gives_up}",
        )

    def block(self, waits: bool) -> tuple[str, str]:
        """Some lines, with a loop among them."""
        chance = self.chance
        lines: list[tuple[str, str]] = []
        for _ in range(chance.randint(1, 2)):
            line = self.filled(chance.choice(WRITES if chance.random() < 0.7 else READS))
            lines.append((line, line))
        if waits:
            lines.insert(chance.randint(0, len(lines)), self.wait())
        return "\n".join(a for a, _ in lines), "\n".join(b for _, b in lines)


def generate(seed: int) -> GeneratedLoops:
    """The program of this seed."""
    chance = random.Random(seed)
    writer = Writer(chance)
    threads = chance.choice((2, 2, 2, 3))
    waiting = chance.sample(range(threads), k=chance.choice((1, 1, 2)))
    first = (
        "def test():\n    o, lst, d, done = Thing(), [], {}, False\n"
        "    lock, cond, ev, never = threading.Lock(), threading.Condition(), threading.Event(), threading.Event()\n"
        "    q = queue.Queue()\n"
    )
    parts, unfolded = [first], [first]
    for k in range(threads):
        head = f"    def work{k}(r):\n        nonlocal done"
        for text, block in zip((parts, unfolded), writer.block(k in waiting), strict=True):
            text += [head, textwrap.indent(block, " " * 8)]
    last = [f"    results = [[] for _ in range({threads})]"]
    last += [
        f"    t{k} = threading.Thread(target=work{k}, args=(results[{k}],))" for k in range(threads)
    ]
    last += [f"    t{k}.start()" for k in range(threads)]
    last += [f"    t{k}.join()" for k in range(threads)]
    last.append("    return tuple(map(tuple, results)), o.x, o.y, tuple(lst), done, q.qsize()")
    made = (HEAD + "\n".join(text + last) + "\n" for text in (parts, unfolded))
    return GeneratedLoops(seed, *made)


class StuckAtTheEnd:
    """Counts the executions in which nothing can happen any more, and what is waited for does not hold."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.count = 0

    def __call__(self, world: World) -> None:
        """See an execution."""
        execution: Any = world._ex
        if execution.end in STUCK:
            gave_up = execution.modules[self.module].GAVE_UP
            self.count += not any(holds() for holds in gave_up)


def compared(program: GeneratedLoops, folder: Path, *, executions: int = 3000) -> Agreement:
    """Compare a program with its unfolded form."""
    agreement = Agreement(program.seed)
    name, other = f"looping_{program.seed}", f"unfolded_{program.seed}"
    path, beside = folder / f"{name}.py", folder / f"{other}.py"
    path.write_text(program.text)
    beside.write_text(program.unfolded)
    looping = result_of(path, name, max_executions=executions)
    agreement.rounds, agreement.traces = looping.rounds, looping.traces or 0
    agreement.withheld = bool(looping.unseen)
    if not looping.exhausted:
        agreement.large = True
        return agreement
    searches: list[dict[str, Any]] = [{"every_access": True, "max_executions": executions}]
    again = Search()
    searches.append({"search": again, "preemptions": 99, "max_executions": 600})
    for k, options in enumerate(searches):
        stuck = StuckAtTheEnd(other)
        full = result_of(beside, other, on_execution=stuck, **options)
        if not full.exhausted:
            agreement.large = agreement.large or k == 0
            continue
        agreement.brute += full.executions * k
        _differences(agreement, looping, full, stuck.count)
        again.promoted.update({race.place: race for race in full.races})
    return agreement


def _differences(agreement: Agreement, looping: Any, full: Any, stuck: int) -> None:
    """Add what differs between a looping program and its unfolded form."""
    ours, theirs = set(looping.outcomes), set(full.outcomes)
    if ours != theirs:
        agreement.wrong.append(f"only looping {ours - theirs}, only unfolded {theirs - ours}")
    waits = sum(looping.ends[end] for end in STUCK)
    if bool(waits) != bool(stuck):
        agreement.wrong.append(f"{waits} executions wait for ever, {stuck} unfolded")
    if looping.redundant:
        agreement.wrong.append(f"{looping.redundant} redundant")
