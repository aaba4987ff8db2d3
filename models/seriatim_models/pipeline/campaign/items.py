"""The items of a campaign: one search each, named by plain words, and what came of it."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from seriatim_models.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from seriatim_models.explorer.search.runner import Runner
    from seriatim_models.explorer.trace.counterexample import Violation

STRATEGIES = ("dpor", "random", "pct", "pos")
NAMES_MOST = 4096
"""Names of traces that one result carries; coverage counts what is carried."""


class Item(msgspec.Struct, frozen=True):
    """One search: a program under a strategy, a seed and bounds."""

    program: str
    mutant: str = ""
    strategy: str = "dpor"
    seed: int = 0
    executions: int | None = None
    """At most so many."""
    seconds: float | None = None
    max_steps: int = 5000
    preemptions: int | None = None
    test: str = ""
    """For the campaign's own tests: what the item does instead of a search."""
    part: str = ""
    """Not a search but a part of one: where it begins, as JSON (see `subtrees.Part`)."""
    first_bug: bool = False
    """Of a part: whether it ends at the first bug."""

    @property
    def id(self) -> str:
        """The same for the same search, whenever and wherever."""
        words = [self.program, self.mutant, self.strategy, str(self.seed), str(self.executions)]
        if not self.part:
            words += [str(self.seconds), str(self.max_steps), str(self.preemptions), self.test]
        else:
            # When a part ends early it hands back what is left: any answer to it is right, however long it took.
            words += ["part", str(self.max_steps), self.part]
        return hashlib.blake2b("\0".join(words).encode(), digest_size=8).hexdigest()

    def told(self) -> Item:
        """As it stands in an outcome: without where a part begins, which may be long."""
        return msgspec.structs.replace(self, part="") if self.part else self


class Bug(msgspec.Struct, frozen=True, array_like=True):
    """What went wrong under a schedule."""

    bug: str
    """Property, or kind of end."""
    trace: str
    """The canonical name of the counterexample's trace (Foata normal form): two schedules of one trace are one bug."""
    token: str
    """Replays it."""


class Outcome(msgspec.Struct, kw_only=True):
    """What came of an item.

    `verdict` is that of the search (ok, violated, inconclusive), or what became of its process: ``timeout``,
    ``died`` (with the signal or exit code in `why`), ``memory``, ``error`` (it raised).
    """

    id: str
    item: Item
    verdict: str
    why: str = ""
    complete: int = 0
    blocked: int = 0
    cut: int = 0
    steps: int = 0
    traces: int | None = None
    """Distinct ones."""
    seconds: float = 0.0
    processor: float = 0.0
    """Seconds of processor time."""
    bugs: list[Bug] = []
    """One at most, but a part of a search has one for each property that is violated in it."""
    names: str = ""
    """Names of the traces seen, 16 bytes each, in base64."""
    prefix: str = ""
    """The steps with which all schedules of a part begin."""
    depth: int = 0
    """How many these are."""
    answer: str = ""
    """What a part of a search says to the master, as JSON."""
    reached: int = 0
    """How many executions a part had behind it when it ended, in whatever way."""

    @property
    def executions(self) -> int:
        """How many were made."""
        return self.complete + self.blocked + self.cut


def items(
    programs: Sequence[str],
    mutants: Sequence[str] = ("",),
    strategies: Sequence[str] = ("dpor",),
    seeds: Iterable[int] = (0,),
    executions: int | None = None,
    seconds: float | None = None,
    preemptions: Iterable[int | None] = (None,),
) -> list[Item]:
    """Every combination. A mutant goes with the programs over the reference that it changes; an exhaustive search has
    no seed, and only it can be bounded in preemptions. Raises `PipelineError` for a name that is not known."""
    from seriatim_models.programs import MUTANTS, PROGRAMS

    asked: list[tuple[str, Sequence[str], Iterable[str]]] = [
        ("program", programs, PROGRAMS),
        ("mutant", [m for m in mutants if m], MUTANTS),
        ("strategy", strategies, STRATEGIES),
    ]
    for kind, names, known in asked:
        for name in names:
            if name not in known:
                raise PipelineError(f"there is no {kind} {name!r}")
    out: dict[str, Item] = {}
    for program in programs:
        for mutant in mutants:
            if mutant and MUTANTS[mutant].reference != PROGRAMS[program].reference:
                continue
            for strategy in strategies:
                exhaustive = strategy == "dpor"
                for seed in [0] if exhaustive else seeds:
                    for bound in preemptions if exhaustive else [None]:
                        item = Item(
                            program, mutant, strategy, seed, executions, seconds, preemptions=bound
                        )
                        out.setdefault(item.id, item)
    return list(out.values())


def preload(items: Iterable[Item]) -> None:
    """Import what the items need, so that the processes that are forked for them have it."""
    if not all(i.test for i in items):
        import seriatim_models.pipeline.campaign.distributed
        import seriatim_models.programs.check  # noqa: F401


def run(item: Item, reached: Callable[[int], None] = lambda _: None) -> Outcome:
    """Do the search, in this process. `reached` is told after each execution of a part how many it was."""
    begun = time.perf_counter()
    if item.test:
        return _test(item)
    if item.part:
        from seriatim_models.pipeline.campaign.distributed import run_part

        return run_part(item, reached)
    from seriatim_models import explorer
    from seriatim_models.programs import MUTANTS, PROGRAMS
    from seriatim_models.programs.check import check_program

    program = PROGRAMS[item.program]
    kept: list[Runner] = []
    kinds = {
        "dpor": explorer.Dpor,
        "random": explorer.Random,
        "pct": explorer.Pct,
        "pos": explorer.Pos,
    }
    chosen: Any = kinds[item.strategy]

    class Keeping(chosen):  # type: ignore[misc]  # the strategy that was chosen, keeping its runner
        def search(self, runner: Runner) -> None:
            kept.append(runner)
            super().search(runner)

    strategy = (
        Keeping(real_time=program.real_time) if item.strategy == "dpor" else Keeping(seed=item.seed)
    )
    budgets: dict[str, Any] = {"max_executions": item.executions, "preemptions": item.preemptions}
    result = check_program(
        program,
        MUTANTS[item.mutant] if item.mutant else None,
        strategy=strategy,
        seconds=item.seconds,
        max_steps=item.max_steps,
        **budgets,
    )
    explored = result.explored
    out = Outcome(
        id=item.id,
        item=item,
        verdict=str(result.verdict),
        why=explored.why,
        complete=explored.complete,
        blocked=explored.blocked,
        cut=explored.cut,
        steps=explored.steps,
        traces=explored.traces,
    )
    if kept and kept[0].seen is not None:
        names = sorted(kept[0].seen.kept)[:NAMES_MOST]
        out.names = base64.b64encode(b"".join(names)).decode()
    case = explored.counterexample
    if case is not None:
        convicted = [
            f.property for f in result.findings if f.n_violations or f.verdict == "violated"
        ]
        said = ", ".join(convicted) or kind(case.violations[0])
        out.bugs = [Bug(said, canonical(item, case.token), case.token)]
    out.seconds = time.perf_counter() - begun
    return out


def kind(wrong: Violation) -> str:
    """What went wrong, in a word that does not depend on the schedule.

    Raises MemoryError if it is that a thread of the program had none left: that is no mistake of the program.
    """
    if wrong.kind == "error" and "raised MemoryError" in str(wrong.what):
        raise MemoryError
    return wrong.key.removeprefix("property ")


def canonical(item: Item, tok: str) -> str:
    """The name of the trace that a token's schedule belongs to, in hexadecimal."""
    from seriatim_models.explorer.model.guard import guarded
    from seriatim_models.explorer.model.program import Limits, Setting
    from seriatim_models.explorer.search.runner import Runner
    from seriatim_models.explorer.trace import replay_token
    from seriatim_models.explorer.trace.foata import FoataLevels

    said = replay_token.read(tok.partition(":")[2])
    setting = Setting(said.real_time, said.timeouts, said.spurious)
    with guarded():
        ex = Runner(_runnable(item), setting, Limits()).fresh()
        levels = FoataLevels(ex)
        for number, way in said.schedule:
            thread = ex.order[number]
            levels.before(thread, way)
            ex.step(thread, way)
        name = levels.digest().hex()
        ex.close()
    return name


def _runnable(item: Item) -> Any:
    from seriatim_models.programs import MUTANTS, PROGRAMS
    from seriatim_models.programs.check import runnable

    return runnable(PROGRAMS[item.program], MUTANTS[item.mutant] if item.mutant else None)


_KEPT: list[bytearray] = []


def _test(item: Item) -> Outcome:
    """What can become of an item, for the tests: ``hang``, ``die``, ``eat``, ``raise``, to ``keep`` so many MiB, to say
    ``who`` did it, or to work some seconds."""
    import os
    import signal

    what, _, amount = item.test.partition(" ")
    match what:
        case "hang":
            time.sleep(3600)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "eat":
            eaten = []
            while True:
                eaten.append(bytearray(2**24))
        case "raise":
            raise ValueError(amount)
        case "keep":
            _KEPT.append(bytearray(int(amount) << 20))
            amount = ""
        case "who":
            return Outcome(id=item.id, item=item, verdict="ok", why=str(os.getpid()))
    until = time.process_time() + float(amount or 0)
    while time.process_time() < until:
        pass
    if what == "find":
        return Outcome(id=item.id, item=item, verdict="violated", bugs=[Bug("P1", "P1", "")])
    return Outcome(id=item.id, item=item, verdict="ok")
