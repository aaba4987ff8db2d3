"""Programs with `match` and with comprehensions whose variables inner functions use: see test_patterns.

`RIGHT` and `WRONG` are what threads do with them; `SEMANTICS` is run by the interpreter and rewritten, value by value.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any


class Point:
    __match_args__ = ("x",)

    def __init__(self, x: int, y: int = 0) -> None:
        self.x = x
        self.y = y


def run(*bodies: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=body) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def right_class_pattern() -> None:
    """The attribute is read anew by each case."""
    point, seen = Point(1), []

    def read() -> None:
        match point:
            case Point(1):
                seen.append(1)
            case Point(x):
                seen.append(x)

    run(read, lambda: setattr(point, "x", 2))
    assert seen[0] in (1, 2)


def wrong_class_pattern() -> None:
    """Attributes are read one by one."""
    point, seen = Point(1, 1), []

    def read() -> None:
        match point:
            case Point(x, y=y):
                seen.append(x == y)

    def write() -> None:
        point.x = 2
        point.y = 2

    run(read, write)
    assert seen == [True]


def wrong_between_two_cases() -> None:
    items, seen = [1, 2], []

    def read() -> None:
        match items:
            case [_, _]:
                seen.append(2)
            case []:
                seen.append(0)
            case _:
                seen.append(-1)

    run(read, items.clear)
    assert seen != [0]


def wrong_list_within_a_dict() -> None:
    table = {"a": [1, 2]}
    seen: list[object] = []

    def read() -> None:
        match table:
            case {"a": [x, y], **rest} if x < y:
                seen.append((x, y, rest))
            case _:
                seen.append(None)

    run(read, lambda: table["a"].pop())
    assert seen != [None]


def wrong_capture_of_a_shared_variable() -> None:
    seen, x = [], 0

    def capture() -> None:
        nonlocal x
        match 5:
            case x:
                pass

    run(capture, lambda: seen.append(x))
    assert seen == [0]


def right_function_in_a_comprehension() -> None:
    last = [lambda: k for k in range(2)]  # noqa: B023 - that is the case
    seen: list[int] = []
    run(*(lambda f=f: seen.append(f()) for f in last))
    assert seen == [1, 1]


def wrong_generator_in_a_comprehension() -> None:
    rows, seen = [[1, 2], [3, 4]], []

    def grow() -> None:
        rows[1].append(5)
        rows.append([])

    run(lambda: seen.append([all(k in row for k in row) for row in rows]), grow)
    assert len(seen[0]) == 2


async def right_function_in_an_asynchronous_comprehension() -> None:
    async def numbers() -> AsyncIterator[int]:
        for k in range(2):
            await asyncio.sleep(1)
            yield k

    last: list[Callable[[], int]] = [lambda: k async for k in numbers()]  # noqa: B023 - that is the case
    assert [f() for f in last] == [1, 1]


SEMANTICS = """
import collections, dataclasses, enum
class Color(enum.Enum):
    RED = 1
@dataclasses.dataclass
class P:
    x: object
    y: object = 0
class Q(P): pass
class Bare:
    def __repr__(self): return "bare"
class Twice(Bare):
    __match_args__ = ("x",)
    x = 1
class Bad(Bare): __match_args__ = ["x"]
class Numbers(Bare): __match_args__ = (1,)
def patterns(v):
    match v:
        case 1 | 2 as n: return ("number", n)
        case None | True: return "none"
        case "a" | "b" as s if s == "a": return s
        case Color.RED: return "red"
        case P(x=0): return "x is 0"
        case Q(P(a, b) as p, int(c)): return ("q", a, b, p is v.x, c)
        case P(x, [y, *rest]) if rest: return (x, y, rest)
        case P([(1 | 2) as k, *_, z], y): return ("list", k, z, y)
        case [1, [2, {"k": w, **others}], *_]: return (w, others)
        case []: return "empty"
        case [x]: return ("one", x)
        case [x, y, *xs] if x == y: return (x, xs)
        case [*_, 9]: return "nine"
        case [*firsts, 8]: return firsts
        case (x, _, y): return (x, y)
        case {"a": 1, "b": P(q)}: return q
        case {"a": _, **rest}: return rest
        case {}: return "map"
        case str(): return "text"
        case float(z): return z
        case Bare(zz=z): return z
        case -1.5 | 2j: return "complex"
        case Bare() as o: return type(o).__name__
        case _: return "else"
def misused(v):
    match v:
        case Bad(1): return 1
        case Numbers(1): return 1
        case Bare(1): return 1
        case Twice(a, x=b): return a
        case P(1, 2, 3): return 1
def bound(v):
    global G
    match v:
        case [G, *_]: return G
    match v:
        case [late, 5]: pass
    return late
def comprehended(v):
    return (
        [(lambda: a + b)() for a, b in [(1, 2), (3, 4)]], {i: (lambda: i)() for i in range(3)},
        list((lambda: z)() for z in range(3)), [[y + x for y in (lambda: [x])()] for x in range(3)],
        [q for q in range(3) if (lambda: q)()], [(lambda: (a, b))() for a in range(2) for b in range(a)],
        [f() for f in [lambda: k for k in range(3)]],
        [a for a in range(5) if a > 1 if a < 4 for b in [1] if b], next((lambda: k)() for k in iter([v])),
    )
class Body:
    n = 3
    match n:
        case 3: hit = 1
        case _: hit = 2
    through = [i for i in range(n)]
def body(v):
    return Body.hit, Body.through
bare = Bare()
bare.zz = 4
class L(collections.UserList): pass
class M(collections.UserDict): pass
VALUES = [
    1, 2, 3, None, True, False, "a", "b", "c", Color.RED, P(0), P(1), Q(P(1, 2), 3), Q(P(1, 2), "x"), P(1, [2, 3]),
    P([1, 5], 2), P([2, 1, 7], [1]), [1, [2, {"k": 1, "l": 2}]], [], (), [4], [3, 3, 4, 5], (3, 4, 9), range(3),
    collections.deque([1, 2, 3]), [1, 2, 3, 8], {"a": 1, "b": P(5)}, {"a": 2, "c": 3}, {}, {"z": 1},
    collections.OrderedDict(a=3), 2.5, -1.5, 2j, bare, Bare(), b"xx", object, {1, 2}, L([1]), L([3, 3, 1]),
    M(a=2, t=1), Bad(), Twice(), Numbers(), [9, 8, 9],
]
"""
