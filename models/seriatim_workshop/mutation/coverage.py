"""What the checks of a reference come to: for each program and each cell of the matrix the blocks that it runs.

A check in which the right reference never comes to the block that a mutant changes runs as with the right one.
It is recorded once, over a reference with a probe at the beginning of each block, and kept in a file under build/.
"""

from __future__ import annotations

import ast
import hashlib
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import msgspec

from seriatim_models.explorer import Dpor, World
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.matrix.cells import MAX_STEPS, PairProgram
from seriatim_models.matrix.scene import Invocation, MatrixSystem, Offer, Universe
from seriatim_models.matrix.states import SystemState, recorded_scene
from seriatim_models.matrix.systems import SYSTEMS as MATRICES
from seriatim_models.matrix.work import PairData, universe_of
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.base import Program
from seriatim_models.programs.check import Judge
from seriatim_models.programs.mutant_modules import SYSTEMS, load, run_modules, source
from seriatim_workshop.matrix_mutants import edges_of, programs_of
from seriatim_workshop.mutation.operators import ROOT, Path_
from seriatim_workshop.mutation.outcomes import OutcomeSet
from seriatim_workshop.mutation.searching import ALL, SOME, search

DEPTH = 2
"""Of the matrices: how many calls lead to a state, at most."""
LOOKED_AT = 10
"""How many executions of a program of the matrix are looked at to find the blocks that it comes to."""
DEPENDS = ("programs", "properties", "recording", "explorer", "machines", "matrix")
BLOCKS = ("body", "orelse", "finalbody", "handlers")


class ProgramProfile(msgspec.Struct):
    """What is known of a program over the right reference."""

    executions: int
    exhausted: bool
    depth: int
    blocks: list[str]
    """The blocks that it comes to, as `block_name` names them."""
    properties: list[str]
    """The properties of its system that hold in it; those that it names, and all others that it does not break."""
    races: bool = False
    """Whether two threads touch a plain attribute with nothing between them; then nothing is said of a mutant's."""
    outcomes: list[str] | None = None
    """Digests of all outcomes, over every schedule; None if not every schedule was run."""
    seconds: float = 0.0
    """Of the processor, for all of its executions."""
    in_threads: list[str] = []
    """Those of the blocks that it comes to after its set-up, where schedules differ."""


class EdgeProfile(msgspec.Struct, frozen=True):
    """A single call of a matrix, and the blocks that it comes to."""

    matrix: str
    universe: str
    path: tuple[Invocation, ...]
    offer: Offer
    blocks: frozenset[str]

    def state(self, system: MatrixSystem) -> SystemState:
        """Return the state from which the call is made."""
        universe: Universe = universe_of(system, self.universe)
        return SystemState(universe, self.path, ())

    @property
    def key(self) -> str:
        """A text that names it."""
        path = ", ".join(map(str, self.path))
        return f"{self.matrix} {self.universe}: {path}; {self.offer.invocation}"


class PairProfile(msgspec.Struct, frozen=True):
    """A program of a matrix, and the blocks that it comes to after its set-up."""

    matrix: str
    pair: PairData
    blocks: frozenset[str]
    executions: int
    exhausted: bool
    seconds: float
    """Of the processor, for one execution."""


class SystemCoverage(msgspec.Struct):
    """The checks of a system: its programs, and the single calls and programs of its matrices."""

    programs: dict[str, ProgramProfile]
    edges: list[EdgeProfile] = []
    pairs: list[PairProfile] = []


def block_name(file: str, path: Path_) -> str:
    """Return the name of the innermost block of a function in which a place is; '' for one in no function."""
    fields = [n for n, (field, _) in enumerate(path) if field in BLOCKS]
    if len(fields) < 2:
        return ""
    last = fields[-1]
    steps = [*path[:last], (path[last][0], None)]
    return file + "".join(f"/{field}{'' if n is None else n}" for field, n in steps)


def probed(file: str) -> ast.Module:
    """Return the syntax tree of `seriatim.<file>` with a probe at the beginning of each block of its functions."""
    tree = ast.parse(source(file))

    def visit(node: ast.AST, path: Path_, inside: bool) -> None:
        inside = inside or isinstance(node, ast.FunctionDef)
        for name in BLOCKS:
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            for n, child in enumerate(block):
                visit(child, (*path, (name, n)), inside)
            if inside and name != "handlers" and block:
                id = block_name(file, (*path, (name, 0)))
                probe = ast.Call(ast.Name("reached_", ast.Load()), [ast.Constant(id)], [])
                docstring = isinstance(block[0], ast.Expr) and isinstance(
                    block[0].value, ast.Constant
                )
                block.insert(int(docstring), ast.Expr(probe))

    visit(tree, (), False)
    return ast.fix_missing_locations(tree)


def properties_of(system: str) -> tuple[str, ...]:
    """Return the ids of all properties that some program over a system names."""
    ids = (id for p in PROGRAMS.values() if p.reference == system for id in p.properties)
    return tuple(dict.fromkeys(ids))


def coverage_of(system: str, cache: Path | None = ROOT / "build") -> SystemCoverage:
    """Return the coverage of a system; kept in a file until a reference, a program or the matrix changes."""
    file = None if cache is None else cache / f"coverage-{system}-{_fingerprint()}.msgpack"
    if file is not None and file.exists():
        return msgspec.msgpack.decode(file.read_bytes(), type=SystemCoverage)
    reached: set[str] = set()
    code = {m: compile(probed(m), f"<probed {m}>", "exec") for m in SYSTEMS[system]}
    lib = run_modules(code, "profiled", {"reached_": reached.add})
    found = SystemCoverage(_programs(system, lib, reached))
    for name, of in MATRICES.items():
        if of.reference == system:
            found.edges += _edges(name, of, lib, reached)
            found.pairs += _pairs(name, of, lib, reached)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        mine = file.with_suffix(f".{os.getpid()}")
        mine.write_bytes(msgspec.msgpack.encode(found))
        mine.replace(file)
    return found


def _programs(system: str, lib: ModuleType, reached: set[str]) -> dict[str, ProgramProfile]:
    made = {}
    for program in PROGRAMS.values():
        if program.reference != system:
            continue
        judge, outcomes, begun = Judge(properties_of(system)), OutcomeSet(), time.process_time()
        blocks = Blocks(program, reached)
        result = search(blocks.program, lib, judge, ALL, keep_going=True, outcomes=outcomes)
        broken = set(judge.violated)
        if broken & set(program.properties):
            raise ValueError(f"the reference itself breaks {broken} in {program.id}")
        seconds = time.process_time() - begun
        observed = search(program, load(system), Judge(()), SOME, attributes=True)
        made[program.id] = ProgramProfile(
            result.executions,
            result.exhausted,
            result.depth,
            sorted(blocks.in_set_up | blocks.in_threads),
            [p for p in properties_of(system) if p not in broken],
            races=bool(observed.found),
            outcomes=sorted(outcomes.found) if result.exhausted else None,
            seconds=seconds,
            in_threads=sorted(blocks.in_threads),
        )
    return made


class Blocks:
    """Collects the blocks that a program comes to, in its set-up and after it, while `program` is searched."""

    def __init__(self, program: Program, reached: set[str]) -> None:
        """`reached` is what the probes put their blocks into."""
        self._reached = reached
        self.in_set_up: set[str] = set()
        self._after: set[str] = set()
        self.program = replace(program, build=partial(self._build, program))
        reached.clear()

    @property
    def in_threads(self) -> set[str]:
        """The blocks that it came to after a set-up."""
        return self._after | self._reached

    def _build(self, program: Program, world: World, lib: ModuleType) -> None:
        self._after |= self._reached
        self._reached.clear()
        program.build(world, lib)
        self.in_set_up |= self._reached
        self._reached.clear()


def _edges(
    name: str, of: MatrixSystem, lib: ModuleType, reached: set[str]
) -> Iterable[EdgeProfile]:
    for edge in edges_of(name, DEPTH):
        reached.clear()
        scene, _ = recorded_scene(of, edge.state.universe, lib)
        for invocation in edge.state.path:
            scene.make(invocation)
        scene.make(edge.offer.invocation)
        scene.settle()
        blocks = frozenset(reached)
        yield EdgeProfile(name, edge.state.universe.name, edge.state.path, edge.offer, blocks)


def _pairs(
    name: str, of: MatrixSystem, lib: ModuleType, reached: set[str]
) -> Iterable[PairProfile]:
    for pair in programs_of(name, DEPTH):
        program = PairProgram(of, lib, pair.pair(of))
        blocks: set[str] = set()

        def build(world: World, program: Callable[[World], None] = program) -> None:
            program(world)
            reached.clear()  # what the set-up comes to, single calls show

        def look(world: World, blocks: set[str] = blocks) -> None:
            blocks |= reached

        limits = Limits(max_executions=LOOKED_AT, max_steps=MAX_STEPS)
        runner = Runner(build, Setting(), limits, on_execution=look, count_traces=False)
        begun = time.process_time()
        with guarded():
            Dpor().search(runner)
        seconds = (time.process_time() - begun) / max(runner.executions, 1)
        yield PairProfile(
            name, pair, frozenset(blocks), runner.executions, runner.exhausted, seconds
        )


def _fingerprint() -> str:
    """Changes when a reference, a program, a property, the matrix or the explorer does."""
    digest = hashlib.sha256(f"{ALL} {DEPTH} {LOOKED_AT}".encode())
    folders = ["reference/seriatim", *(f"models/seriatim_models/{p}" for p in DEPENDS)]
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in (*files, Path(__file__), Path(__file__).with_name("outcomes.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
