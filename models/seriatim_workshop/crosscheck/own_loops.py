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
import re
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

BY_BRUTE_FORCE = 20
"""Traces of an unfolded program up to which all its schedules are few enough to be run one by one."""

HEAD = """
import itertools
import queue
import threading
import time

GAVE_UP = []
SEEN = {}
G = 0


class Thing:
    total = 0

    def __init__(self):
        self.x = self.y = self.z = 0

    def high(self, k):
        return self.x >= k


class Found(Exception):
    pass


def taken(items):
    try:
        return items.pop()
    except IndexError:
        return None


def got(items):
    try:
        return items.get_nowait()
    except queue.Empty:
        return None

"""

WRITES = (
    "o.x = {k}", "o.x += 1", "o.y = {k}", "lst.append({k})", "with lock:\n    o.y = {k}", "ev.set()", "q.put({k})",
    "d[{k}] = 1", "done = True", "with lock:\n    o.x += 1\n    o.y = o.x",
    "with cond:\n    o.y = 1\n    cond.notify()", "o.x = 0", "lst.clear()", "ev.clear()", "Thing.total = {k}",
    "SEEN['k'] = {k}", "G = {k}", "permits.release()", "with again:\n    o.y = {k}",
    # What is awaited is there for a moment only, or comes back:
    "o.x = 1\no.x = 0", "ev.set()\nev.clear()", "o.x = 0\no.x = {k}", "d[{k}] = 1\nd.pop({k}, None)",
)  # fmt: skip
READS = (
    "r.append(o.x)", "r.append(o.y)", "r.append(len(lst))", "r.append(done)", "r.append(q.qsize())",
    "with lock:\n    r.append(o.y)", "r.append(sorted(d))", "r.append(ev.is_set())",
    "if lock.acquire(blocking=False):\n    lock.release()\nelse:\n    r.append('busy')",
)  # fmt: skip
AWAITED = (
    # What a loop waits for, and the same when it is over, where nothing is under control.
    ("o.x == {k}", ""), ("o.x >= {k}", ""), ("o.high({k})", ""), ("o.y", ""), ("o.x and o.y", ""), ("lst", ""),
    ("len(lst) > 1", ""), ("{k} in d", ""), ("done", ""), ("ev.is_set()", "ev._flag"), ("not q.empty()", "q.queue"),
    ("any(e == {k} for e in lst)", ""), ("not lock.locked()", "lock.value is None"),
    ("o.x == 1 or done", ""), ("o.x == o.y", ""), ("o.y > o.x", ""), ("d.get({k})", ""), ("Thing.total", ""),
    ("SEEN.get('k') == {k}", ""), ("G == {k}", ""), ("[e for e in lst if e == {k}]", ""), ("getattr(o, 'x')", ""),
    ("all((o.x, lst))", ""), ("sum(t.x for t in (o, Thing()))", ""),
)  # fmt: skip
TAKEN = (
    # What a loop asks for again and again, and what changes as soon as it is there.
    ("lock.acquire(blocking=False)", "lock.value is None"),
    ("permits.acquire(blocking=False)", "permits.value"),
    ("d.pop({k}, None)", "{k} in d"), ("taken(lst)", "lst"), ("got(q)", "q.queue"),
)  # fmt: skip
LOOPS = (
    "pass", "time.sleep(0.01)", "time.sleep(0)\nr.append('round') if False else None", "Thing().y = 1",
    "[].append(o.y)", "o.high(2)", "{}.update(d)", "pass", "[o.x, o.y, done]", "[len(lst), len(d), q.qsize(), G]",
    "time.sleep(0.01)", "with lock:\n    pass",
)  # fmt: skip
"""What a round does besides: some read what is waited for once more, and may find it there."""
ENDS = {
    # How a loop ends by itself: what is before it, the other reason to end, what each round does, what is after it.
    # Such a loop stands in both programs as it is. Grouped by what a round changes.
    "variables": (
        ("n = 0", "n > 1", "n += 1", "r.append(n)"), ("n = 0", "n", "n = 1", "r.append(n)"),
        ("def more():\n    nonlocal m\n    m += 1\nm = 0", "m > 1", "more()", "r.append(m)"),
        ("tries = iter((0, 0))", "next(tries, 1)", "pass", "r.append(len(list(tries)))"),
        ("tries = (e for e in (0, 0))", "next(tries, 1)", "pass", "r.append(len(list(tries)))"),
        ("own = threading.local()\nown.n = 0", "own.n > 1", "own.n += 1", "r.append(own.n)"),
    ),
    "objects of its own": (
        ("own = Thing()", "own.x > 1", "own.x += 1", "r.append(own.x)"),
        ("own = []", "len(own) > 1", "own.append(0)", "r.append(len(own))"),
        ("own = {}", "len(own) > 1", "own[len(own)] = 0", "r.append(len(own))"),
        ("own = [Thing()]", "own[0].x > 1", "own[0].x += 1", "r.append(own[0].x)"),
    ),
    "what is shared": (
        ("o.z = 0", "o.z", "o.z = 1", "r.append(o.z)"),
        ("pass", "Thing.total", "Thing.total += 1", "r.append(Thing.total)"),
        ("pass", "lst", "lst.append({k})", "pass"), ("pass", "ev.is_set()", "ev.set()", "pass"),
        ("pass", "done", "done = True", "pass"), ("pass", "d", "d[{k}] = 1", "pass"),
        ("pass", "not q.empty()", "q.put({k})", "pass"), ("pass", "SEEN", "SEEN['k'] = {k}", "pass"),
        ("pass", "o.y", "o.y = {k}", "pass"),
        ("def count(of):\n    of.z += 1\no.z = 0", "o.z > 1", "count(o)", "r.append(o.z)"),
    ),
    "locks": (
        ("again.acquire()", "not again._is_owned()", "again.release()",
         "r.append(again._is_owned())\nif r[-1]:\n    again.release()"),
        ("pass", "again._is_owned()", "again.acquire()",
         "r.append(again._is_owned())\nif r[-1]:\n    again.release()"),
        ("own = threading.RLock()", "own._is_owned()", "own.acquire()", "r.append(own._is_owned())"),
        ("lock.acquire()", "not lock.locked()", "lock.release()", "pass"),
    ),
    "operations": (
        ("pass", "not permits.acquire(blocking=False)", "pass", "pass"),
        ("own = threading.Semaphore(2)", "not own.acquire(blocking=False)", "pass",
         "r.append(own.acquire(blocking=False))"),
        ("own = threading.Semaphore(0)", "own._value > 1", "own.release()", "r.append(own._value)"),
        ("own = queue.SimpleQueue()", "own.qsize() > 1", "own.put({k})", "r.append(own.qsize())"),
        ("own = queue.SimpleQueue()\nown.put(1)\nown.put(2)", "own.empty()", "own.get_nowait()",
         "r.append(own.qsize())"),
    ),
}  # fmt: skip
# P: what is awaited; BODY: what a round does besides; GIVE: the thread gives up. In an unfolded loop, N rounds.
FORMS = {
    "while": (
        "while not (P):\n    BODY",
        "for _ in range(N):\n    if P:\n        break\n    BODY\nelse:\n    GIVE",
    ),
    "break": (
        "while True:\n    if P:\n        break\n    BODY",
        "for _ in range(N):\n    if P:\n        break\n    BODY\nelse:\n    GIVE",
    ),
    "else": (
        "while not (P):\n    BODY\nelse:\n    r.append('else')",
        "for _ in range(N):\n    if P:\n        r.append('else')\n        break\n    BODY\nelse:\n    GIVE",
    ),
    "continue": (
        "while True:\n    if not (P):\n        BODY\n        continue\n    break",
        "for _ in range(N):\n    if not (P):\n        BODY\n        continue\n    break\nelse:\n    GIVE",
    ),
    "return": (
        "def wait():\n    while True:\n        if P:\n            return 'there'\n        BODY\nr.append(wait())",
        "def wait():\n    for _ in range(N):\n        if P:\n            return 'there'\n        BODY\n    GIVE\n"
        "r.append(wait())",
    ),
    "raise": (
        "try:\n    while True:\n        if P:\n            raise Found\n        BODY\n"
        "except Found:\n    r.append('found')",
        "try:\n    for _ in range(N):\n        if P:\n            raise Found\n        BODY\n    GIVE\n"
        "except Found:\n    r.append('found')",
    ),
    "finally": (
        "while True:\n    try:\n        if P:\n            break\n    finally:\n        BODY",
        "for _ in range(N):\n    try:\n        if P:\n            break\n    finally:\n        BODY\nelse:\n    GIVE",
    ),
    "bound": (
        "while True:\n    seen = bool(P)\n    if seen:\n        break\n    BODY",
        "for _ in range(N):\n    seen = bool(P)\n    if seen:\n        break\n    BODY\nelse:\n    GIVE",
    ),
    "walrus": (
        "while not (seen := P):\n    BODY\nr.append(bool(seen))",
        "for _ in range(N):\n    seen = P\n    if seen:\n        break\n    BODY\nelse:\n    GIVE\n"
        "r.append(bool(seen))",
    ),
    "locked": (
        "while True:\n    with lock:\n        if P:\n            break\n    BODY",
        "for _ in range(N):\n    with lock:\n        if P:\n            break\n    BODY\nelse:\n    GIVE",
    ),
    "inner": (
        "while True:\n    while not o.x:\n        pass\n    if P:\n        break\n    BODY",
        "for _ in range(N):\n    for _ in range(N):\n        if o.x:\n            break\n    else:\n"
        "        GAVE_UP.append(lambda: o.x)\n        never.wait()\n    if P:\n        break\n    BODY\n"
        "else:\n    GIVE",
    ),
    "counted": (
        "for _ in itertools.count():\n    if P:\n        break\n    BODY",
        "for _ in range(N):\n    if P:\n        break\n    BODY\nelse:\n    GIVE",
    ),
    "asked": (
        "for _ in iter(lambda: bool(P), True):\n    BODY",
        "for _ in range(N):\n    if P:\n        break\n    BODY\nelse:\n    GIVE",
    ),
    "once": (  # the first round does more than the others
        "first = True\nwhile not (P):\n    if first:\n        o.y += 1\n        first = False\n    BODY",
        "first = True\nfor _ in range(N + 1):\n    if P:\n        break\n    if first:\n        o.y += 1\n"
        "        first = False\n    BODY\nelse:\n    GIVE",
    ),
}
UNDER_THE_LOCK = ("with lock:\n    o.y = {k}", "with again:\n    o.x = {k}", "o.x += 1")


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
        takes = chance.random() < 0.25
        k = chance.randint(1, 2)
        form, lock_form = chance.choice(list(FORMS)), chance.choice(("while", "break", "raise"))
        awaited, afterwards = chance.choice(TAKEN if takes else AWAITED)
        if takes and form in ("locked", "once", "finally", "inner"):
            form = lock_form
        if "lock.l" in awaited or "lock.acq" in awaited:
            form = lock_form
        looping, unfolded = FORMS[form]
        for name, text in {
            "BODY": chance.choice(LOOPS[:-1] if "lock" in awaited else LOOPS),
            "GIVE": f"GAVE_UP.append(lambda: {afterwards or awaited})\nnever.wait()",
            "N": str(ROUNDS),
            "P": awaited,
        }.items():
            looping, unfolded = (put_in(before, name, text) for before in (looping, unfolded))
        if awaited.startswith("lock.acquire"):
            after = f"\n{chance.choice(UNDER_THE_LOCK[2:])}\nlock.release()"
            looping, unfolded = looping + after, unfolded + after
        return self.filled(looping, k), self.filled(unfolded, k)

    def tries(self) -> str:
        """A loop that waits for something, and ends by itself if it does not come soon."""
        chance = self.chance
        before, other, each, after = chance.choice(ENDS[chance.choice(list(ENDS))])
        awaited = chance.choice(AWAITED)[0]
        head = f"while not ({awaited}) and not ({other}):\n"
        if chance.random() < 0.5:
            head = (
                f"while True:\n    if {other}:\n        break\n    if {awaited}:\n        break\n"
            )
        body = textwrap.indent(f"{each}\n{chance.choice(LOOPS[:3])}", "    ")
        return self.filled(f"{before}\n{head}{body}\n{after}", chance.randint(1, 2))

    def block(self, waits: bool, tries: bool) -> tuple[str, str]:
        """Some lines, with a loop among them."""
        chance = self.chance
        lines: list[tuple[str, str]] = []
        for _ in range(chance.randint(1, 2)):
            line = self.filled(chance.choice(WRITES if chance.random() < 0.75 else READS))
            lines.append((line, line))
        if waits:
            lines.insert(chance.randint(0, len(lines)), self.wait())
        if tries:
            lines.insert(chance.randint(0, len(lines)), (self.tries(),) * 2)
        return "\n".join(a for a, _ in lines), "\n".join(b for _, b in lines)


def put_in(before: str, name: str, text: str) -> str:
    """A text with some lines at the place of a name, as far to the right as that stands."""
    lines = []
    for line in before.split("\n"):
        if line.strip() == name:
            lines.append(textwrap.indent(text, line[: -len(name)]))
        else:
            lines.append(re.sub(rf"\b{name}\b", lambda _: text, line))
    return "\n".join(lines)


def generate(seed: int) -> GeneratedLoops:
    """The program of this seed."""
    chance = random.Random(seed)
    writer = Writer(chance)
    threads = chance.choice((2, 2, 2, 3))
    waiting = chance.sample(range(threads), k=chance.choice((1, 1, 1, 2)))
    trying = chance.choice((None, *range(threads), *range(threads)))
    first = (
        "def test():\n    o, lst, d, done = Thing(), [], {}, False\n"
        "    lock, cond, ev, never = threading.Lock(), threading.Condition(), threading.Event(), threading.Event()\n"
        "    q, permits, again = queue.Queue(), threading.Semaphore(1), threading.RLock()\n"
    )
    parts, unfolded = [first], [first]
    for k in range(threads):
        head = f"    def work{k}(r):\n        nonlocal done\n        global G"
        block = writer.block(k in waiting, k == trying)
        for text, lines in zip((parts, unfolded), block, strict=True):
            text += [head, textwrap.indent(lines, " " * 8)]
    last = [f"    results = [[] for _ in range({threads})]"]
    last += [
        f"    t{k} = threading.Thread(target=work{k}, args=(results[{k}],))" for k in range(threads)
    ]
    last += [f"    t{k}.start()" for k in range(threads)]
    last += [f"    t{k}.join()" for k in range(threads)]
    last.append(
        "    return tuple(map(tuple, results)), o.x, o.y, tuple(lst), tuple(d), done, q.qsize(), ev.is_set()"
    )
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
        if (full.traces or 0) > BY_BRUTE_FORCE:
            break
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
