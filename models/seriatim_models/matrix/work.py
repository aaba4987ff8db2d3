"""A matrix as work: items that any process can do, waves of growing budgets, and a journal that survives a kill.

An item is all programs of one state, named by plain data, so it can be done in this process, in another, or on a
cluster. In the first wave every program has a small budget of executions. What was capped comes again in the next
wave, with a larger one: so the many programs that need three executions are not behind the few that need thousands.
"""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, TypeVar, get_args

import msgspec

import seriatim
import seriatim_models
from seriatim_models.child_process import processes
from seriatim_models.files import decoded, read_whole, sealed, unsealed
from seriatim_models.matrix.cells import CallPair, Mode, PairResult, run_pair
from seriatim_models.matrix.scene import Invocation, MatrixSystem, Universe
from seriatim_models.matrix.states import explore_path
from seriatim_models.matrix.systems import SYSTEMS
from seriatim_models.programs import MUTANTS
from seriatim_models.programs.mutant_modules import load

T = TypeVar("T")

SCHEMA = "seriatim-matrix-journal/1"
WAVES = (100, 1_000, 10_000, 100_000)
"""Executions of one program in each wave."""
PAIRS_PER_ITEM = 12
"""How many programs an item has at most, of the smallest budget."""
PATIENCE = 0.2
"""Seconds between looks whether to stop, while other processes work."""


def inside_name(call: str) -> str:
    """Return the name of a call that a callback makes, as the matrix shows it."""
    return f"{call} inside"


class PairData(msgspec.Struct, frozen=True):
    """A `CallPair` as plain data."""

    universe: str
    path: tuple[Invocation, ...]
    calls: tuple[Invocation, ...]
    owners: tuple[str, ...]
    mode: Mode
    callback: str = ""
    """The call that consumers' callbacks make, if it is one of the calls at once."""

    @classmethod
    def of(cls, pair: CallPair) -> PairData:
        """Return the data of a pair."""
        callback = pair.universe.callback if pair.universe.callback_races else ""
        return cls(pair.universe.name, pair.path, pair.calls, pair.owners, pair.mode, callback)

    @property
    def cell(self) -> tuple[str, ...]:
        """The names of the calls at once, sorted; that of a callback says so."""
        inside = (inside_name(self.callback),) if self.callback else ()
        return tuple(sorted((*(c.call for c in self.calls), *inside)))

    def pair(self, system: MatrixSystem) -> CallPair:
        """Return the pair again."""
        return CallPair(
            universe_of(system, self.universe), self.path, self.calls, self.owners, self.mode
        )

    @property
    def key(self) -> str:
        """A text that names this program among those of its system."""
        path = ", ".join(map(str, self.path))
        return f"{self.mode} {self.universe}: {path}; {' | '.join(map(str, self.calls))}"

    @classmethod
    def read(cls, key: str, system: MatrixSystem) -> PairData:
        """Return the program of that key. Raises `ValueError` if it names none of the system."""
        beginning, _, at_once = key.strip().rpartition("; ")
        mode, _, rest = beginning.partition(" ")
        universe, _, path = rest.partition(":")
        known = [u.name for u in system.universes]
        if mode not in get_args(Mode) or universe not in known:
            raise ValueError(
                f"{key!r} is no program: MODE UNIVERSE: CALL, ...; CALL | CALL, where MODE is "
                f"{' or '.join(get_args(Mode))} and UNIVERSE {', '.join(known)}"
            )
        before = [Invocation.read(c) for c in path.split(",") if c.strip()]
        calls = [Invocation.read(c) for c in at_once.split("|")]
        for call in (*before, *calls):
            if call.call not in system.table:
                raise ValueError(
                    f"{system.name} has no call {call.call!r}; there is {', '.join(system.table)}"
                )
        state = explore_path(system, universe_of(system, universe), load(system.reference), before)
        offered = {o.invocation: o for o in state.offers}
        for call in calls:
            if call not in offered:
                raise ValueError(f"{call} cannot be made after {state}")
        owners = tuple(offered[c].thread for c in calls)
        return cls.of(
            CallPair(
                universe_of(system, universe),
                tuple(before),
                tuple(calls),
                owners,
                "serve" if mode == "serve" else "settle",
            )
        )


class PairBatch(msgspec.Struct, frozen=True):
    """Some programs of one system, and the budget of each."""

    system: str
    programs: tuple[PairData, ...]
    max_executions: int
    mutant: str = ""
    """Id of the mutant that is run in place of the reference."""


class Done(msgspec.Struct, frozen=True):
    """A program and what came of it; one line of a journal."""

    program: PairData
    result: PairResult


class JournalHeader(msgspec.Struct, frozen=True):
    """The first line of a journal."""

    schema: str
    system: str
    depth: int
    code: str
    """A digest of the sources: results of other code do not count."""
    mutant: str = ""
    """Id of the mutant that was run in place of the reference."""


def header(system: str, depth: int, mutant: str = "") -> JournalHeader:
    """Return the header of results over the sources as they are."""
    return JournalHeader(SCHEMA, system, depth, code_digest(), mutant)


class WrongJournal(Exception):
    """A journal is not of this run."""


def call_names(system: MatrixSystem) -> tuple[str, ...]:
    """Return the names of a system's calls, and of those that are made in callbacks, in the table's order."""
    inside = {u.callback for u in system.universes if u.callback_races}
    return (*system.table, *(inside_name(name) for name in system.table if name in inside))


def universe_of(system: MatrixSystem, name: str) -> Universe:
    """Return a system's universe by name."""
    return next(u for u in system.universes if u.name == name)


def do(item: PairBatch) -> list[Done]:
    """Run the programs of an item."""
    system = SYSTEMS[item.system]
    right = load(system.reference)
    lib = load(system.reference, MUTANTS[item.mutant]) if item.mutant else right
    compared = right if item.mutant else None
    return [
        Done(p, run_pair(system, lib, p.pair(system), item.max_executions, compared))
        for p in item.programs
    ]


def items(
    system: str, programs: Iterable[PairData], max_executions: int, mutant: str = ""
) -> Iterator[PairBatch]:
    """Yield items of some programs each; of fewer with a larger budget, so that no process is the last for long."""
    size = max(1, PAIRS_PER_ITEM * WAVES[0] // max_executions)
    batch: list[PairData] = []
    for program in programs:
        batch.append(program)
        if len(batch) == size:
            yield PairBatch(system, tuple(batch), max_executions, mutant)
            batch = []
    if batch:
        yield PairBatch(system, tuple(batch), max_executions, mutant)


# ---- waves


class Waves:
    """The programs that are still to be done, wave by wave. `add` takes in results as they come."""

    def __init__(
        self,
        system: str,
        programs: Sequence[PairData],
        waves: Sequence[int] = WAVES,
        mutant: str = "",
    ) -> None:
        self.system = system
        self.mutant = mutant
        self.programs = programs
        self.waves = waves
        self.results: dict[str, Done] = {}

    def add(self, done: Done) -> None:
        """Take in a result; a later one of the same program, of a larger budget, replaces it."""
        self.results[done.program.key] = done

    def pending(self, budget: int) -> list[PairData]:
        """Return the programs that have no result yet, or were capped below this budget."""
        return [p for p in self.programs if self._open(p, budget)]

    def _open(self, program: PairData, budget: int) -> bool:
        done = self.results.get(program.key)
        if done is None:
            return True
        result = done.result
        return not result.exhausted and not result.problem and result.executions < budget


Perform = Callable[[Iterable[PairBatch]], Iterator[list[Done]]]
"""Does items, in any order, and yields what came of each."""


def run_waves(
    waves: Waves,
    perform: Perform,
    keep: Callable[[Done], None] = lambda done: None,
    over: Callable[[], bool] = lambda: False,
) -> bool:
    """Run all waves until `over`; returns whether every program was run to its end or to the largest budget."""
    for budget in waves.waves:
        pending = waves.pending(budget)
        for batch in perform(items(waves.system, pending, budget, waves.mutant)):
            for done in batch:
                waves.add(done)
                keep(done)
            if over():
                return False
    return True


# ---- one process or several


def perform_here(todo: Iterable[PairBatch]) -> Iterator[list[Done]]:
    """Do items in this process, and yield each program's result as it comes."""
    gc.freeze()  # else what is imported is looked through again every few executions
    try:
        for item in todo:
            for program in item.programs:
                yield do(msgspec.structs.replace(item, programs=(program,)))
    finally:
        gc.unfreeze()


def perform_in_processes(todo: Iterable[PairBatch], jobs: int) -> Iterator[list[Done]]:
    """Do items in `jobs` processes, and yield something now and then; whoever stops asking ends them."""
    source = iter(todo)
    with processes(jobs) as pool:
        pending: set[Future[list[Done]]] = set()
        while True:
            while len(pending) < 2 * jobs and (item := next(source, None)) is not None:
                pending.add(pool.submit(do, item))
            if not pending:
                return
            ended, pending = wait(pending, PATIENCE, return_when=FIRST_COMPLETED)
            yield [done for future in ended for done in future.result()]


def performer(jobs: int) -> Perform:
    """Return what does items in so many processes."""
    return perform_here if jobs == 1 else partial(perform_in_processes, jobs=jobs)


# ---- the journal


@cache
def code_digest() -> str:
    """Return a digest of all sources that a result depends on."""
    digest = blake2b(digest_size=8)
    for package in (seriatim, seriatim_models):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            if path.relative_to(root).parts[0] not in ("cli", "report", "pipeline", "conformance"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


class Journal:
    """Results, a JSON line with a checksum each, behind a header. Only the last line can be cut off, by a kill; it is
    done again.
    """

    def __init__(self, path: Path, system: str, depth: int, mutant: str = "") -> None:
        self.path = path
        self.header = header(system, depth, mutant)
        self._file: BinaryIO | None = None

    def read(self) -> list[Done]:
        """Return the results that an earlier run kept; none if there is no file, or its first line was cut off.

        Raises `WrongJournal` if the file is another run's, or cannot be read, and leaves it as it is.
        """
        if not self.path.exists():
            return []
        content = read_whole(self.path, error=WrongJournal)
        if self._first_line().startswith(content):
            return []
        lines = content.split(b"\n")
        alien = f"{self.path} is not a journal of a matrix"
        found = decoded(lines[0], JournalHeader, alien, WrongJournal)
        if found != self.header:
            raise WrongJournal(f"{self.path} is of {differing(found, self.header)}")
        return [
            unsealed(line, Done, f"{self.path}: line {n} is damaged", WrongJournal)
            for n, line in enumerate(lines[1:-1], 2)
        ]

    def keep(self, done: Done) -> None:
        """Append a result. Raises `WrongJournal` if the file cannot be written."""
        try:
            if self._file is None:
                self._file = self._open()
            line = sealed(done)
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise WrongJournal(f"{self.path} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Close the file, if anything was kept."""
        if self._file is not None:
            self._file.close()

    def _open(self) -> BinaryIO:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        file = self.path.open("r+b", buffering=0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)  # a kill may have cut off the last line, also if that is the first
        file.seek(0, 2)
        if not whole:
            file.write(self._first_line())
        return file

    def _first_line(self) -> bytes:
        return msgspec.json.encode(self.header) + b"\n"


def differing(found: JournalHeader, due: JournalHeader) -> str:
    """Return in which fields a header is another one, in words."""
    names = [f for f in JournalHeader.__struct_fields__ if getattr(found, f) != getattr(due, f)]
    if names == ["code"]:
        return "other sources, which have changed since"
    return ", ".join(f"{n} {getattr(found, n)} and not {getattr(due, n)}" for n in names)
