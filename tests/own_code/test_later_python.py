"""What Python 3.12 to 3.14 brought: syntax that older interpreters do not parse, so the programs are texts here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from seriatim_models.explorer.errors import OutsideModel
from seriatim_workshop.crosscheck.own_code import result_of

HEAD = """
import threading


def together(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


"""


class Program(NamedTuple):
    """A program, and what its verdict is."""

    since: tuple[int, int]
    """The first version that parses it, or has what it uses."""
    verdict: str
    text: str


PROGRAMS = {
    "alias": Program((3, 12), "ok", """
type Pair = tuple[int, Later]
class Later: pass
def test():
    seen = []
    def look(): seen.append(Pair.__value__)
    together(look, look)
    assert seen[0] == seen[1] == tuple[int, Later]
"""),
    "alias_reads_rebound": Program((3, 12), "violated", """
kind = int
type Alias = list[kind]
def test():
    def swap():
        global kind
        kind = str
    seen = []
    def look(): seen.append(Alias.__value__)
    together(swap, look)
    assert seen == [list[int]]
"""),
    "alias_closure": Program((3, 12), "violated", """
def test():
    kind = int
    type Alias = list[kind]
    def swap():
        nonlocal kind
        kind = str
    seen = []
    def look(): seen.append(Alias.__value__)
    together(swap, look)
    assert seen == [list[int]]
"""),
    "alias_generic": Program((3, 12), "ok", """
type Twice[T, *Ts, **P] = tuple[T, T]
def test():
    seen = []
    def look(): seen.append(Twice[int].__args__)
    together(look, look)
    assert seen[0] == (int,)
"""),
    "generic_function": Program((3, 12), "violated", """
class Box[T]:
    def __init__(self, value: T) -> None:
        self.value = value
    def swap[U: (int, str)](self, by: U) -> T:
        before = self.value
        self.value = before + by
        return before
def add[T: Box](box: T, by: int = 1) -> T:
    T2 = T
    box.swap(by)
    return box
def test():
    box = Box(0)
    together(lambda: add(box), lambda: add(box))
    assert box.value == 2
"""),
    "generic_function_right": Program((3, 12), "ok", """
class Box[T]:
    def __init__(self, value: T) -> None:
        self.value = value
        self.lock = threading.Lock()
    def swap[U: (int, str)](self, by: U) -> T:
        with self.lock:
            before = self.value
            self.value = before + by
            return before
def test():
    box = Box[int](0)
    together(lambda: box.swap(1), lambda: box.swap(1))
    assert box.value == 2
    assert Box.__type_params__[0].__name__ == "T"
    assert Box.swap.__type_params__[0].__constraints__ == (int, str)
"""),
    "generic_shadow": Program((3, 12), "ok", """
def test():
    T = 1
    def set_it():
        nonlocal T
        T = 2
    def named[T](x: T) -> object:
        return T.__name__
    def look():
        assert named(1) == "T"
    together(set_it, look)
"""),
    "generic_class_closure": Program((3, 12), "ok", """
def test():
    kind = int
    def set_it():
        nonlocal kind
        kind = str
    class A[T: kind]:
        def get[U](self, x: U) -> T: return (T, U)
    together(set_it, lambda: A().get(1))
    assert A.__type_params__[0].__bound__ is str
"""),
    "generic_bound_race": Program((3, 12), "violated", """
def test():
    kind = int
    def set_it():
        nonlocal kind
        kind = str
    class A[T: kind]:
        pass
    seen = []
    together(set_it, lambda: seen.append(A.__type_params__[0].__bound__))
    assert seen == [str]
"""),
    "nested_fstring": Program((3, 12), "violated", """
class C:
    n = 0
def test():
    c = C()
    def add():
        text = f"{f'{c.n + 1}'}"
        c.n = int(f"{text!s:{'>'}{"5"}}")
    together(add, add)
    assert c.n == 2
"""),
    "except_star": Program((3, 11), "violated", """
class C:
    n = 0
def test():
    c = C()
    def add():
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
        except* ValueError as e:
            c.n += len(e.exceptions)
        except* TypeError:
            pass
    together(add, add)
    assert c.n == 2
"""),
    "except_star_name_shared": Program((3, 11), "ok", """
def test():
    out = []
    def add():
        e = None
        def look(): return e
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
        except* ValueError as e:
            out.append(len(look().exceptions))
        except* TypeError as e:
            out.append(len(look().exceptions))
        try:
            look()
        except NameError:
            out.append("gone")
    together(add, add)
    assert sorted(map(str, out)) == ["1", "1", "1", "1", "gone", "gone"]
"""),
    "tstring": Program((3, 14), "violated", """
class C:
    n = 0
def test():
    c = C()
    def add():
        t = t"{c.n + 1:>{5}}!{c.n!r}"
        assert t.interpolations[0].expression == "c.n + 1"
        assert t.interpolations[0].format_spec == ">5"
        assert t.interpolations[1].conversion == "r"
        assert t.strings == ("", "!", "")
        c.n = t.values[0]
    together(add, add)
    assert c.n == 2
"""),
    "tstring_keeps": Program((3, 14), "violated", """
def test():
    items = [1]
    template = t"{items}"
    seen = []
    def look():
        seen.append("".join(p if isinstance(p, str) else format(p.value) for p in template))
    together(lambda: items.append(2), look)
    assert seen == ["[1, 2]"]
"""),
    "tstring_right": Program((3, 14), "ok", """
from string.templatelib import Template, Interpolation
def render(t: Template) -> str:
    out = []
    for part in t:
        match part:
            case Interpolation(value, _, conversion, spec):
                out.append(format(value, spec))
            case _:
                out.append(part)
    return "".join(out)
def test():
    lock = threading.Lock()
    n = 0
    def add():
        nonlocal n
        with lock:
            n = int(render(t"{n + 1}"))
    together(add, add)
    assert n == 2
    assert render(t"a{1:03}" + t"b{2}") == "a001b2"
"""),
    "except_no_parens": Program((3, 14), "violated", """
class C:
    n = 0
def test():
    c = C()
    def add():
        try:
            {}["x"]
        except KeyError, ValueError:
            c.n += 1
    together(add, add)
    assert c.n == 2
"""),
    "annotations_later": Program((3, 14), "ok", """
class Node:
    next: Later
    def f(self, other: Later) -> Later: ...
class Later: pass
value: Later = 1
def test():
    seen = []
    def look():
        seen.append((Node.__annotations__, Node.f.__annotations__))
    together(look, look)
    assert seen[0][0] == {"next": Later}
    assert seen[0][1] == {"other": Later, "return": Later}
    import annotationlib
    assert annotationlib.get_annotations(Node)["next"] is Later
    import typing
    assert typing.get_type_hints(Node)["next"] is Later
"""),
    "annotations_race": Program((3, 14), "violated", """
class Node:
    next: Later
def test():
    seen = []
    def define():
        global Later
        Later = int
    def look():
        try:
            seen.append(Node.__annotations__)
        except NameError:
            seen.append(None)
    together(define, look)
    assert seen == [{"next": int}]
"""),
    "annotations_closure_race": Program((3, 14), "violated", """
def test():
    kind = int
    class Node:
        next: kind
    seen = []
    def define():
        nonlocal kind
        kind = str
    def look():
        seen.append(Node.__annotations__)
    together(define, look)
    assert seen == [{"next": str}]
"""),
    "annotations_function_race": Program((3, 14), "violated", """
def test():
    kind = int
    def f(x: kind): ...
    seen = []
    def define():
        nonlocal kind
        kind = str
    def look():
        seen.append(f.__annotations__)
    together(define, look)
    assert seen == [{"x": str}]
"""),
    "annotations_calls": Program((3, 14), "violated", """
calls = 0
def count():
    global calls
    calls += 1
    return int
class A:
    x: count()
class B:
    x: count()
def test():
    together(lambda: A.__annotations__, lambda: B.__annotations__)
    assert calls == 2
"""),
    "annotations_module_global": Program((3, 11), "ok", """
state: int = 0
def test():
    def bump():
        global state
        state = 1
    together(bump)
    import sys
    assert sys.modules[__name__].__annotations__ == {"state": int}
"""),
    "dataclass_later": Program((3, 14), "ok", """
from dataclasses import dataclass, fields
@dataclass
class Node:
    next: Later | None = None
    n: int = 0
@dataclass
class Later:
    node: Node
def test():
    node = Node()
    lock = threading.Lock()
    def add():
        with lock:
            node.n += 1
    together(add, add)
    assert node == Node(None, 2)
    assert [f.name for f in fields(Later)] == ["node"]
"""),
    "dataclass_later_race": Program((3, 14), "violated", """
from dataclasses import dataclass
@dataclass
class Node:
    next: Later | None = None
    n: int = 0
@dataclass(slots=True)
class Later:
    node: Node
def test():
    node = Node()
    def add():
        node.n += 1
    together(add, add)
    assert node == Node(None, 2)
"""),
    "copy_replace": Program((3, 13), "ok", """
import copy
from dataclasses import dataclass
@dataclass
class A:
    x: int
    y: int
def test():
    a = A(1, 2)
    out = []
    def go(): out.append(copy.replace(a, x=3))
    together(go, go)
    assert out == [A(3, 2), A(3, 2)]
"""),
    "copy_replace_race": Program((3, 13), "violated", """
import copy
from dataclasses import dataclass
@dataclass
class A:
    x: int
    y: int
def test():
    a = A(1, 1)
    out = []
    def go(): out.append(copy.replace(a))
    def change():
        a.x = 2
        a.y = 2
    together(go, change)
    assert out[0].x == out[0].y
"""),
    "copy_replace_own": Program((3, 13), "violated", """
import copy
class A:
    def __init__(self, x): self.x = x
    def __replace__(self, **kw):
        self.x += 1
        return A(self.x)
def test():
    a = A(1)
    together(lambda: copy.replace(a), lambda: copy.replace(a))
    assert a.x == 3
"""),
    "queue_shutdown": Program((3, 13), "ok", """
import queue
def test():
    q = queue.Queue()
    out = []
    def get():
        try:
            out.append(q.get())
        except queue.ShutDown:
            out.append("shut")
    together(get, q.shutdown)
    assert out == ["shut"]
"""),
    "asyncio_shutdown": Program((3, 13), "ok", """
import asyncio
def test():
    async def main():
        q = asyncio.Queue()
        async def get():
            try:
                return await q.get()
            except asyncio.QueueShutDown:
                return "shut"
        async with asyncio.TaskGroup() as g:
            t = g.create_task(get())
            await asyncio.sleep(0.1)
            q.shutdown()
        assert t.result() == "shut"
    asyncio.run(main())
"""),
    "eager": Program((3, 12), "ok", """
import asyncio
def test():
    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        done = []
        async def work():
            done.append(1)
            await asyncio.sleep(0.1)
            done.append(2)
        t = asyncio.create_task(work())
        assert done == [1]
        assert len(asyncio.all_tasks()) == 2
        await t
    asyncio.run(main())
"""),
    "eager_start": Program((3, 14), "ok", """
import asyncio
def test():
    async def main():
        done = []
        async def work():
            done.append(1)
            await asyncio.sleep(0.1)
        t = asyncio.create_task(work(), eager_start=True)
        assert done == [1]
        async with asyncio.TaskGroup() as g:
            g.create_task(work(), eager_start=True, name="x")
            assert done == [1, 1]
        await t
    asyncio.run(main())
"""),
    "condition_locked": Program((3, 14), "ok", """
def test():
    c = threading.Condition()
    r = threading.RLock()
    def hold():
        with c, r:
            assert c.locked() and r.locked()
    together(hold, hold)
    assert not c.locked() and not r.locked()
"""),
    "thread_context": Program((3, 14), "ok", """
import contextvars
v = contextvars.ContextVar("v", default=0)
def test():
    v.set(5)
    seen = []
    def look(): seen.append(v.get())
    t = threading.Thread(target=look, context=contextvars.copy_context())
    t.start(); t.join()
    t = threading.Thread(target=look)
    t.start(); t.join()
    import sys
    assert seen == [5, 5 if sys.flags.thread_inherit_context else 0]
    with v.set(7):
        assert v.get() == 7
    assert v.get() == 5
"""),
    "uuid7": Program((3, 14), "ok", """
import uuid
def test():
    seen = []
    together(lambda: seen.append(uuid.uuid7()), lambda: seen.append(uuid.uuid6()), lambda: seen.append(uuid.uuid8()))
    assert len(set(seen)) == 3
    assert sorted(u.version for u in seen) == [6, 7, 8]
"""),
    "placeholder": Program((3, 14), "violated", """
import functools
class C: n = 0
def add(c, k): c.n += k
def test():
    c = C()
    f = functools.partial(add, functools.Placeholder, 1)
    together(lambda: f(c), lambda: f(c))
    assert c.n == 2
"""),
    "batched_race": Program((3, 12), "violated", """
import itertools
def test():
    items = [1, 2, 3, 4]
    out = []
    together(lambda: out.extend(itertools.batched(items, 2)), lambda: items.append(5))
    assert out == [(1, 2), (3, 4)]
"""),
    "heap_max": Program((3, 14), "violated", """
import heapq
class K:
    def __init__(self, n): self.n = n
    def __lt__(self, o): return self.n < o.n
def test():
    h = []
    got = []
    def go(n):
        heapq.heappush_max(h, K(n))
        got.append(heapq.heappop_max(h).n)
    together(lambda: go(1), lambda: go(2))
    assert got == [1, 2]
"""),
    "typevar_default": Program((3, 13), "ok", """
class A[T = int]:
    def get(self) -> T: ...
def test():
    together(lambda: A[str]())
    assert A.__type_params__[0].__default__ is int
"""),
    "class_lambda_in_annotation_scope": Program((3, 13), "ok", """
class A:
    kind = int
    type X = kind
    def f[T: kind](self, x: T): ...
def test():
    out = []
    together(lambda: out.append(A.X.__value__))
    assert out == [int]
    assert A.f.__type_params__[0].__bound__ is int
"""),
    "template_shown": Program((3, 14), "violated", """
def test():
    items = [1]
    template = t"{items}"
    seen = []
    together(lambda: items.append(2), lambda: seen.append(repr(template)))
    assert "[1, 2]" in seen[0]
"""),
    "template_shared": Program((3, 14), "ok", """
def test():
    template = t"{1}a{2}"
    other = t"{1}a"
    seen = []
    class Holder: pass
    h = Holder()
    h.t = template
    together(
        lambda: seen.append(h.t.values),
        lambda: seen.append((h.t + other).values),
        lambda: [seen.append(x) for x in h.t.interpolations],
    )
    assert len(seen) == 4
"""),
    "typevars_shared": Program((3, 12), "ok", """
def first[T, *Ts, **Q](x: T) -> T: return x
def test():
    seen = []
    together(lambda: seen.append(first.__type_params__[0].__name__), lambda: seen.append(repr(first.__type_params__)))
    assert sorted(seen)[1] == "T"
"""),
    "aliases_race": Program((3, 12), "violated", """
class Kinds: pass
type A = Kinds.x
def test():
    Kinds.x = int
    seen = []
    def other(): Kinds.x = str
    together(other, lambda: seen.append(A.__value__))
    assert seen == [int]
"""),
    "context_twice": Program((3, 14), "violated", """
import contextvars
def test():
    c = contextvars.copy_context()
    lock = threading.Lock()
    def work():
        with lock: pass
    threads = [threading.Thread(target=work, context=c) for _ in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
"""),
    "uuid7_order": Program((3, 14), "ok", """
import uuid
def test():
    seen = [uuid.uuid7()]
    t = threading.Thread(target=lambda: seen.append(uuid.uuid7()))
    t.start(); t.join()
    seen.append(uuid.uuid7())
    assert seen == sorted(seen)
    assert uuid.uuid6() < uuid.uuid6()
"""),
    "annotation_formats": Program((3, 14), "ok", """
from dataclasses import dataclass, fields
import annotationlib, inspect, typing
def test():
    n = 0
    @dataclass
    class Node:
        next: Later | None = None
        def f(self, x: Later, y: list[Later] = ()) -> "Later": ...
    @dataclass(slots=True)
    class Later:
        n: int
    out = []
    together(lambda: out.append(Node()), lambda: out.append(Later(1)))
    assert len(out) == 2
    S, F, V = annotationlib.Format.STRING, annotationlib.Format.FORWARDREF, annotationlib.Format.VALUE
    assert annotationlib.get_annotations(Node, format=S) == {"next": "Later | None"}
    assert annotationlib.get_annotations(Node.f, format=S) == {"x": "Later", "y": "list[Later]", "return": "Later"}
    assert annotationlib.get_annotations(Node, format=F) == {"next": Later | None}
    assert Node.f.__annotations__["y"] == list[Later]
    assert str(inspect.signature(Node.f)).startswith("(self, x:")
"""),
    "typed_dict_named_tuple": Program((3, 14), "ok", """
import typing
def test():
    class P(typing.NamedTuple):
        x: Later
        y: int = 0
    class D(typing.TypedDict):
        x: Later
    class Q(typing.Protocol):
        z: Later
    class Later: pass
    out = []
    together(lambda: out.append(P(1)), lambda: out.append(D(x=1)))
    assert P.__annotations__ == {"x": Later, "y": int} and len(out) == 2
    assert typing.get_type_hints(D) == {"x": Later}
"""),
    "annotations_by_a_function": Program((3, 14), "violated", """
def test():
    def f(x: int): ...
    def replace(): f.__annotate__ = lambda format: {"x": str}
    seen = []
    together(replace, lambda: seen.append(f.__annotations__))
    assert seen == [{"x": str}]
"""),
    "annotations_of_a_class_by_a_function": Program((3, 14), "violated", """
class Node:
    x: int
def test():
    def replace(): Node.__annotate__ = lambda format: {"x": str}
    seen = []
    together(replace, lambda: seen.append(Node.__annotations__))
    assert seen == [{"x": str}]
"""),
    "annotations_by_the_library": Program((3, 14), "violated", """
import annotationlib
def test():
    def f(x: int): ...
    def replace(): f.__annotations__ = {"x": str}
    seen = []
    together(replace, lambda: seen.append(annotationlib.get_annotations(f)))
    assert seen == [{"x": str}]
"""),
    "annotations_by_the_library_under_a_lock": Program((3, 14), "ok", """
import annotationlib
lock = threading.Lock()
class Node:
    x: int
def test():
    def f(x: Node) -> Node: ...
    seen = []
    def look():
        with lock:
            seen.append((annotationlib.get_annotations(f), annotationlib.get_annotations(Node)))
    together(look, look)
    assert seen[0] == seen[1] == ({"x": Node, "return": Node}, {"x": int})
"""),
    "alias_that_reads_what_races": Program((3, 12), "inconclusive", """
def test():
    kind = int
    type Alias = list[kind]
    def swap():
        nonlocal kind
        kind = str
    seen = []
    def look(): seen.append(Alias.__value__)
    together(swap, look)
    assert seen[0] in (list[int], list[str])
"""),
    "annotation_that_reads_what_races": Program((3, 14), "inconclusive", """
kind = int
class Node:
    next: kind
def test():
    def swap():
        global kind
        kind = str
    seen = []
    together(swap, lambda: seen.append(Node.__annotations__))
    assert seen[0]["next"] in (int, str)
"""),
    "annotation_that_is_evaluated_at_once": Program((3, 11), "violated", """
def test():
    kind = int
    def define():
        nonlocal kind
        kind = str
    seen = []
    def look():
        def f(x: kind): ...
        seen.append(f.__annotations__)
    together(define, look)
    assert seen == [{"x": str}]
"""),
    "annotations_as_text": Program((3, 11), "ok", """
def test():
    def define():
        global kind
        kind = str
    seen = []
    def look():
        def f(x: kind): ...
        seen.append(f.__annotations__)
    together(define, look)
    assert seen == [{"x": "kind"}]
"""),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_verdict_is_that_of_the_program(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    if sys.version_info < program.since:
        pytest.skip(f"it is of Python {program.since[0]}.{program.since[1]}")
    path = tmp_path / f"later_{name}.py"
    head = "from __future__ import annotations\n" if name == "annotations_as_text" else ""
    path.write_text(head + HEAD + program.text)
    result = result_of(path, path.stem, keep_going=False, stuck_ok=False, max_executions=2000)
    assert result.verdict == program.verdict, result.why
    assert result.unseen == [] or program.verdict != "ok"


ELSEWHERE = {
    "interpreters.create": """
from concurrent import interpreters
def test():
    interpreter = interpreters.create()
    together(lambda: interpreter.exec("x = 1"))
""",
    "InterpreterPoolExecutor": """
from concurrent.futures import InterpreterPoolExecutor
def test():
    with InterpreterPoolExecutor(1) as pool:
        assert pool.submit(abs, -1).result() == 1
""",
}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="interpreters of one process are of 3.14")
@pytest.mark.parametrize("name", ELSEWHERE)
def test_another_interpreter_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.py"
    path.write_text(HEAD + ELSEWHERE[name])
    with pytest.raises(OutsideModel, match=f"{name} is outside the model"):
        result_of(path, path.stem, stuck_ok=False, max_executions=2000)
