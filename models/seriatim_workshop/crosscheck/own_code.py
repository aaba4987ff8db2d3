"""Generated programs of ordinary Python: promotion of racing places against every access a step, and brute force.

A program is the text of a module with one test function: threads over shared attributes, globals, closure variables,
lists, dicts, iterators, generators, views of dicts, locks, conditions, events, semaphores and queues.
It returns what its threads saw. For each program

- the search with promotion and the one in which each access is a step from the beginning must end with the same
  outcomes, the same ends and the same number of traces;
- for small ones, all schedules of the promoted program, one by one, must have the same outcomes and ends;
- real threads, interrupted between bytecode instructions, must show no outcome that the search has not.

`python -m seriatim_workshop.crosscheck.own --kind threads` prints what differs, and the program.
"""

from __future__ import annotations

import importlib.util
import random
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from seriatim_models.explorer.python.execution import Search
from seriatim_models.explorer.python.front import PythonResult, explored
from seriatim_models.explorer.python.program import Target
from seriatim_models.explorer.search.explore import Strategy

HEAD = """
import collections
import itertools
import queue
import threading

G = 0


def numbers(o):
    yield o.x
    o.x += 1
    yield o.x


class Thing:
    total = 0

    def __init__(self, x=0):
        self.x = x
        self.y = None

    def bump(self):
        self.x += 1
        return self.x

    @property
    def double(self):
        return 2 * self.x


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self, x=0):
        self.x = x
        self.y = None

    def bump(self):
        self.x = self.x + 1
        return self.x


def shown(value):
    if isinstance(value, (Thing, Slotted)):
        return "thing"
    if isinstance(value, (list, tuple, collections.deque)):
        return tuple(shown(v) for v in value)
    return value

"""

LINES: dict[str, tuple[int, list[str]]] = {
    # What a line is about, how often it is drawn, and its forms; {k} is a small number.
    "attribute": (8, [
        "o.x = {k}", "r.append(o.x)", "o.x += 1", "r.append(o.bump())", "p.x = o.x", "r.append(p.double)",
        "setattr(o, 'x', {k})", "r.append(getattr(o, 'x'))", "s.x += {k}", "r.append(s.bump())",
    ]),
    "global": (3, ["G = {k}", "G += 1", "r.append(G)"]),
    "closure": (3, ["v = {k}", "v += 1", "r.append(v)"]),
    "class": (1, ["Thing.total += 1", "r.append(o.total)", "Thing.total = {k}"]),
    "list": (4, [
        "lst.append({k})", "r.append(len(lst))", "r.append({k} in lst)", "r.append(tuple(lst))", "lst += [{k}]",
        "r.append(lst == [1])", "lst[0:1] = [{k}, {k}]", "r.append(sum(lst))", "r.append(sorted(lst))",
        "if lst:\\n    r.append(lst.pop())", "for e in lst:\\n    r.append(e)\\n    if len(r) > 3:\\n        break",
        "r.append([e for e in lst][:2])", "a, *b = lst + [0]\\nr.append(a)",
    ]),
    "dict": (3, [
        "d[{k}] = 1", "r.append(d.get({k}))", "r.append(d.pop({k}, None))", "r.append(len(d.items()))",
        "d.setdefault({k}, []).append(7)", "r.append(sorted(d))", "r.append({k} in d)",
        "try:\\n    r.append(shown(d[{k}]))\\nexcept KeyError:\\n    r.append('key')",
    ]),
    "deque": (2, [
        "dq.append({k})", "try:\\n    r.append(dq.popleft())\\nexcept IndexError:\\n    r.append('empty')",
        "r.append(len(dq))",
    ]),
    "publish": (3, [
        "o.y = p", "o.y = Thing({k})", "if o.y is not None:\\n    o.y.x += 1\\n    r.append(o.y.x)", "o.y = [{k}]",
        "if isinstance(o.y, list):\\n    o.y.append(1)\\n    r.append(len(o.y))", "r.append(shown(o.y))",
    ]),
    "lock": (4, [
        "with lock:\\n    {inner}", "with lock:\\n    {inner}\\n    {inner}",
        "with rlock:\\n    with rlock:\\n        {inner}",
        "if lock.acquire(False):\\n    {inner}\\n    lock.release()\\nelse:\\n    r.append('busy')",
        "lock.acquire()\\ntry:\\n    {inner}\\nfinally:\\n    lock.release()", "r.append(lock.locked())",
    ]),
    "condition": (2, [
        "with cond:\\n    o.x = 1\\n    cond.notify()", "with cond:\\n    while not o.x:\\n        cond.wait()",
        "with cond:\\n    if not o.x:\\n        cond.wait()\\n    r.append(o.x)", "with cond:\\n    cond.notify_all()",
        "with cond:\\n    r.append(cond.wait(0.01))",
    ]),
    "event": (2, [
        "ev.set()", "ev.wait()", "r.append(ev.is_set())", "ev.clear()", "r.append(ev.wait(0.01))",
    ]),
    "semaphore": (1, ["sem.acquire()", "sem.release()", "r.append(sem.acquire(blocking=False))"]),
    "queue": (2, [
        "q.put({k})", "r.append(q.get())", "r.append(q.qsize())",
        "try:\\n    r.append(q.get_nowait())\\nexcept queue.Empty:\\n    r.append('empty')",
        "try:\\n    r.append(q.get(timeout=0.01))\\nexcept queue.Empty:\\n    r.append('late')",
    ]),
    "timed": (1, [
        "if lock.acquire(timeout=0.01):\\n    {inner}\\n    lock.release()\\nelse:\\n    r.append('late')",
    ]),
    "nested": (1, [
        "n = threading.Thread(target=lambda: o.bump())\\nn.start()\\n{inner}\\nn.join()",
        "n = threading.Thread(target=p.bump)\\nn.start()\\n{inner}",
    ]),
    "match": (1, [
        "match o:\\n case Thing(x=0):\\n  r.append('zero')\\n case Thing(x=n, y=m):\\n  r.append((n, m is p))",
        "match lst:\\n case [n]:\\n  r.append(n)\\n case [n, *m] if m:\\n  r.append((n, len(m)))",
        "match d:\\n case {1: n, **m}:\\n  r.append((shown(n), len(m)))\\n case {}:\\n  r.append('else')",
        "match o.y, o.x:\\n case Thing(x=n), (0 | 1):\\n  r.append(n)\\n case [n, *_], _:\\n  r.append(n)",
        "match o.x:\\n case v if v < 2:\\n  r.append(v)",
    ]),
    "comprehension": (1, [
        "r.append([f() for f in [lambda: (e, o.x) for e in lst]])",
        "r.append([any(n == e for n in lst if n) for e in (1, 2)])", "r.append([e for e in lst if e if o.x])",
        "r.append({e: (lambda: n)() for e, n in [(1, o.x), (2, len(lst))]}[2])",
    ]),
    "iterator": (4, [
        "r.append(next(it, 'end'))", "for e in it:\\n    r.append(e)\\n    break", "r.append(tuple(it))",
        "it = iter(lst)",
        "r.append(next(pairs, 'end'))", "r.append(list(zipped))", "for e in zipped:\\n    r.append(e)\\n    break",
        "r.append(next(texts, 'end'))", "r.append(list(itertools.islice(it, 1)))", "lst.append({k})",
        "n = iter(lst)\\nr.append(next(n, 'end'))\\nr.append(next(n, 'end'))",
        "for n, e in enumerate(reversed(lst)):\\n    r.append((n, e))\\n    if n:\\n        break",
        "r.append([e for e in itertools.chain(it, lst)][:3])", "r.append(max(map(abs, lst), default=0))",
        "for e in map(lambda n: n + o.x, it):\\n    r.append(e)\\n    break",
    ]),
    "generator": (3, [
        "try:\\n    r.append(next(gen, 'end'))\\nexcept ValueError:\\n    r.append('busy')",
        "try:\\n    for e in gen:\\n        r.append(e)\\nexcept ValueError:\\n    r.append('busy')",
        "try:\\n    gen.close()\\nexcept ValueError:\\n    r.append('busy')",
        "try:\\n    r.append(sum(gen))\\nexcept ValueError:\\n    r.append('busy')", "gen = numbers(o)",
        "n = numbers(o)\\nr.append(next(n))\\nr.append(next(n))", "r.append([e + o.x for e in numbers(p)])",
        "n = (e for e in lst if o.x)\\nr.append(next(n, 'end'))\\nr.append(next(n, 'end'))", "o.x += 1",
    ]),
    "view": (2, [
        "r.append(sorted(keys))", "r.append(len(items))", "r.append({k} in keys)", "d[{k}] = o.x",
        "try:\\n    for e in items:\\n        r.append(e[0])\\nexcept RuntimeError:\\n    r.append('changed')",
        "try:\\n    r.append(next(entries, 'end'))\\nexcept RuntimeError:\\n    r.append('changed')",
        "r.append(d.pop({k}, None))", "r.append(len(keys & {0, 1}))",
        "r.append(sorted(zip(keys, itertools.count())))",
    ]),
    "error": (1, ["try:\\n    {inner}\\n    raise ValueError\\nexcept ValueError as e:\\n    r.append('error')"]),
}  # fmt: skip
PLAIN = ("attribute", "global", "closure", "list", "dict", "publish")
"""What stands inside of other lines."""


@dataclass
class Generated:
    """A generated program."""

    seed: int
    text: str


class LineMaker:
    """Draws lines over a few subjects."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.subjects = chance.sample(sorted(LINES), k=chance.randint(1, 4))
        if "attribute" not in self.subjects and chance.random() < 0.6:
            self.subjects.append("attribute")
        self.weights = [LINES[subject][0] for subject in self.subjects]

    def line(self, inside: bool = False) -> str:
        """A statement, which may have several lines."""
        chance = self.chance
        subject = (
            chance.choice([s for s in self.subjects if s in PLAIN] or ["attribute"])
            if inside
            else chance.choices(self.subjects, self.weights)[0]
        )
        form = chance.choice(LINES[subject][1]).replace("\\n", "\n")
        result = []
        for text in form.split("\n"):
            if "{inner}" in text:
                indent = text[: len(text) - len(text.lstrip())]
                result.append(textwrap.indent(self.line(inside=True), indent))
            else:
                result.append(text.replace("{k}", str(chance.randint(0, 2))))
        return "\n".join(result)

    def block(self, least: int, most: int) -> str:
        """So many statements."""
        return "\n".join(self.line() for _ in range(self.chance.randint(least, most))) or "pass"


SHARED = (
    "def test():",
    "    global G",
    "    G = 0",
    "    o, p, s = Thing(), Thing(5), Slotted()",
    "    lst, d, dq = [1], {}, collections.deque()",
    "    lock, rlock, cond = threading.Lock(), threading.RLock(), threading.Condition()",
    "    ev, sem, q = threading.Event(), threading.Semaphore(1), queue.Queue(1)",
    "    v = 0",
    "    it, gen, keys, items = iter(lst), numbers(o), d.keys(), d.items()",
    "    pairs, zipped, texts, entries = enumerate(lst), zip(lst, dq), map(str, lst), iter(d)",
)
"""How each test begins."""
STATE = "o.x, p.x, s.x, G, v, shown(lst), shown(sorted(d.items())), shown(dq), tuple(it)"
"""What each test returns behind what its threads saw."""


def generate(seed: int) -> Generated:
    """The program of this seed."""
    chance = random.Random(seed)
    maker = LineMaker(chance)
    line = maker.line
    threads = chance.choice((2, 2, 2, 3))
    parts = list(SHARED)
    for k in range(threads):
        parts += [
            f"    def work{k}(r):",
            "        nonlocal v, lst, it, gen",
            "        global G",
            textwrap.indent(maker.block(1, 2 if threads == 3 else 3), " " * 8),
        ]
    parts.append(f"    results = [[] for _ in range({threads + 1})]")
    parts.append(f"    r = results[{threads}]")
    for k in range(threads):
        parts.append(f"    t{k} = threading.Thread(target=work{k}, args=(results[{k}],))")
    order = list(range(threads))
    for k in order:
        parts.append(f"    t{k}.start()")
        if chance.random() < 0.2:
            parts.append(textwrap.indent(line(), " " * 4))
        if chance.random() < 0.1:
            parts.append(f"    t{k}.join()")
    if chance.random() < 0.3:
        parts.append(textwrap.indent(line(), " " * 4))
    parts += [f"    t{k}.join()" for k in order]
    parts.append(f"    return shown(results), {STATE}")
    return Generated(seed, HEAD + "\n".join(parts) + "\n")


@dataclass
class Agreement:
    """What the comparison of one program said."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    large: bool = False
    """Whether a budget ran out, so that nothing was compared."""
    withheld: bool = False
    traces: int = 0
    brute: int = 0
    """Schedules that were run one by one; 0 if they were too many."""
    rounds: int = 0
    fewer: int = 0
    """Executions that symmetry saved."""


def result_of(
    path: Path,
    name: str,
    *,
    every_access: bool = False,
    search: Search | None = None,
    strategy: Strategy | None = None,
    **options: Any,
) -> PythonResult:
    """Explore the test of a generated module."""
    search = Search(every_access=every_access) if search is None else search
    options = {"keep_going": True, "stuck_ok": True, "max_steps": 400, "shrink": 0, **options}
    return explored(Target(name, str(path), "test"), search, strategy, (), None, options)


def compared(
    program: Generated, folder: Path, *, executions: int = 3000, brute_max: int = 300
) -> Agreement:
    """Compare the ways to run one program."""
    name = f"generated_{program.seed}"
    path = folder / f"{name}.py"
    path.write_text(program.text)
    agreement = Agreement(program.seed)
    promoted = result_of(path, name, max_executions=executions)
    agreement.rounds = promoted.rounds
    agreement.traces = promoted.traces or 0
    if not promoted.exhausted:
        agreement.large = True
        return agreement
    full = result_of(path, name, every_access=True, max_executions=executions + 1)
    agreement.withheld = bool(promoted.unseen)
    if not full.exhausted:
        if promoted.traces is not None and promoted.traces < executions:
            agreement.wrong.append(f"{promoted.traces} traces, but more with every access a step")
        return agreement
    if promoted.traces != full.traces:
        agreement.wrong.append(f"{promoted.traces} traces, {full.traces} with every access a step")
    for what in ("outcomes", "ends"):
        ours, theirs = set(getattr(promoted, what)), set(getattr(full, what))
        if ours != theirs:
            agreement.wrong.append(
                f"{what}: only promoted {ours - theirs}, only full {theirs - ours}"
            )
    if promoted.redundant or promoted.blocked:
        agreement.wrong.append(f"{promoted.redundant} redundant, {promoted.blocked} blocked")
    if (full.traces or 0) <= 12:
        _compare_with_brute_force(agreement, path, name, promoted, brute_max)
    if set(promoted.ends) <= {"finished"}:
        for outcome in real_outcomes(path, name):
            if outcome not in promoted.outcomes:
                agreement.wrong.append(f"real threads showed {outcome}, which was not explored")
    return agreement


def _compare_with_brute_force(
    agreement: Agreement, path: Path, name: str, promoted: PythonResult, most: int
) -> None:
    """Run all schedules of the promoted program one by one, if they are few."""
    again = Search()
    again.promoted.update({race.place: race for race in promoted.races})
    brute = result_of(path, name, search=again, preemptions=99, max_executions=most)
    if not brute.exhausted:
        return
    agreement.brute = brute.executions
    differ = set(brute.outcomes) ^ set(promoted.outcomes), set(brute.ends) ^ set(promoted.ends)
    if any(differ):
        agreement.wrong.append(f"brute force: {differ}")


def real_outcomes(path: Path, name: str, times: int = 8) -> Iterator[Any]:
    """What real threads do, some times, when they lose the processor between any two instructions of the module.

    It owes nothing to the rewritten code: an access that is not announced shows here as an outcome too many.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    hook = threading.excepthook
    threading.excepthook = lambda args: None
    try:
        for k in range(times):
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            seen: list[Any] = []
            threading.settrace(_interrupting(str(path), random.Random(k)))
            runner = threading.Thread(target=_kept(module.test, seen), daemon=True)
            runner.start()
            runner.join(5)
            threading.settrace(None)
            yield from seen
    finally:
        threading.settrace(None)
        threading.excepthook = hook


def _interrupting(path: str, chance: random.Random) -> Callable[..., Any]:
    """A trace function that lets other threads run between two instructions of one file, now and then."""

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != path:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and chance.random() < 0.1:
            time.sleep(chance.choice((0, 0, 1e-5, 2e-4)))
        return trace

    return trace


def _kept(test: Callable[[], Any], seen: list[Any]) -> Callable[[], None]:
    return lambda: seen.append(test())
