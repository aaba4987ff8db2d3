"""Judging a changed reference by every schedule of the closed programs, and then by the matrix of calls.

A mutant is a set of modules of its own beside the right ones (`run_modules`), so nothing of this process is replaced.
The programs run smallest first, each first for a few schedules and then for all, up to a bound: a program that has more
is *capped*, and says nothing about a mutant that it did not catch. A program in which the right reference never comes
to the block that a mutant changes runs as with the right one, and is left out: `Profiles` knows which those are.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import resource
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType

from seriatim_models.explorer import Dpor, World
from seriatim_models.explorer.model.attributes import AttributeObserver
from seriatim_models.explorer.model.guard import guarded
from seriatim_models.explorer.model.program import Limits, Setting
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.matrix.mutants import first_problem
from seriatim_models.matrix.systems import SYSTEMS as MATRICES
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.base import Program
from seriatim_models.programs.check import Judge
from seriatim_models.programs.mutant_modules import (
    SYSTEMS,
    reference_classes,
    run_modules,
    source,
    system_of,
)
from seriatim_workshop.mutation.operators import ROOT, Path_
from seriatim_workshop.mutation.run import CAPPED

FEW, SOME, ALL = 10, 600, 3000
"""How many executions of a program are run at first, of one that has more than `ALL`, and at most."""
MATRIX_DEPTH, MATRIX_EXECUTIONS = 1, 100
"""Over the right reference everything at this depth holds, so what is wrong is the mutant."""
MATRIX_SECONDS = 600
"""Of the processor, for one matrix."""

SECONDS = 60
"""Of the processor, after which a program with a mutant counts as an endless loop that no step of a schedule ends."""
CAUGHT = 1
"""Exit code of a process that caught its mutant; 0 is that it survived, and see `run.CAPPED`."""


@dataclass(frozen=True)
class Kill:
    """What a mutant was caught by."""

    by: str
    """A property's id, ``outcome``, an end of the explorer (``deadlock``, ``livelock``, ...) or ``raises Error``."""
    where: str
    """The program, or the cell of the matrix."""

    def __str__(self) -> str:
        return f"{self.by} in {self.where}"


@dataclass
class ProgramProfile:
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


def block_name(file: str, path: Path_) -> str:
    """The name of the innermost block in which a place is."""
    last = max((n for n, (field, _) in enumerate(path) if field in BLOCKS), default=-1)
    steps = [*path[:last], (path[last][0], None)] if last >= 0 else []
    return file + "".join(f"/{field}{'' if n is None else n}" for field, n in steps)


BLOCKS = ("body", "orelse", "finalbody", "handlers")


# ---- profiles of the programs over the right reference


def _probed(file: str) -> ast.Module:
    """The syntax tree of `seriatim.<file>` with a probe at the beginning of each block of its functions."""
    tree = ast.parse(source(file))

    def visit(node: ast.AST, path: Path_, inside: bool) -> None:
        inside = inside or isinstance(node, ast.FunctionDef)
        for name in (*BLOCKS,):
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
    """The ids of all properties that some program over a system names."""
    ids = (id for p in PROGRAMS.values() if p.reference == system for id in p.properties)
    return tuple(dict.fromkeys(ids))


def profiles(system: str, cache: Path | None = ROOT / "build") -> dict[str, ProgramProfile]:
    """The profile of each program over a system; kept in a file until a reference or a program changes."""
    file = None if cache is None else cache / f"profiles-{system}-{_fingerprint()}.json"
    if file is not None and file.exists():
        found = json.loads(file.read_text(encoding="utf-8"))
        return {id: ProgramProfile(**profile) for id, profile in found.items()}
    reached: set[str] = set()
    code = {m: compile(_probed(m), f"<probed {m}>", "exec") for m in SYSTEMS[system]}
    lib = run_modules(code, "profiled", {"reached_": reached.add})
    made = {}
    for program in PROGRAMS.values():
        if program.reference == system:
            reached.clear()
            judge = Judge(properties_of(system))
            result = run(program, lib, judge, ALL, keep_going=True)
            broken = set(judge.violated)
            if broken & set(program.properties):
                raise ValueError(f"the reference itself breaks {broken} in {program.id}")
            holding = [p for p in properties_of(system) if p not in broken]
            blocks = sorted(reached)
            observed = run(program, lib, Judge(()), SOME, attributes=True)
            made[program.id] = ProgramProfile(
                result.executions,
                result.exhausted,
                result.depth,
                blocks,
                holding,
                races=bool(observed.found),
            )
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({id: asdict(profile) for id, profile in made.items()})
        mine = file.with_suffix(f".{os.getpid()}")
        mine.write_text(text, encoding="utf-8")
        mine.replace(file)
    return made


def _fingerprint() -> str:
    """Changes when a reference, a program, a property or the explorer does."""
    digest = hashlib.sha256(f"{ALL}".encode())
    for folder in ("reference/seriatim", *(f"models/seriatim_models/{p}" for p in DEPENDS)):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


DEPENDS = ("programs", "properties", "recording", "explorer")


# ---- judging


def run(
    program: Program,
    lib: ModuleType,
    judge: Judge,
    executions: int,
    max_steps: int = 5000,
    keep_going: bool = False,
    attributes: bool = False,
) -> Runner:
    """Search the schedules of a program over some modules of its system, and judge each execution.

    With `attributes` a data race on a plain attribute of the reference is a violation, too.
    """

    def build(world: World) -> None:
        program.build(world, lib)

    runner = Runner(
        build,
        Setting(program.real_time),
        Limits(max_executions=executions, max_steps=max_steps, keep_going=keep_going),
        on_execution=judge,
        count_traces=False,
        observer=AttributeObserver(reference_classes(lib)) if attributes else None,
    )
    observed = nullcontext() if runner.observer is None else runner.observer.installed()
    with guarded(), observed:
        Dpor(real_time=program.real_time).search(runner)
    return runner


def kill_of(program: Program, runner: Runner) -> Kill | None:
    """What convicted a mutant in a program: a property before an end, an end before an exception."""
    if not runner.found:
        return None
    found: dict[str, str] = {}
    for violation in runner.found[0][1]:
        text = str(violation.what)
        if violation.kind == "property":
            id = re.match(r"[A-Z]+-\d+", text)
            found.setdefault("property", id.group() if id else "assertion")
        elif violation.kind == "error":
            error = re.search(r" raised (\w+)", text)
            found.setdefault("error", f"raises {error.group(1) if error else 'an error'}")
        else:
            found.setdefault("end", violation.kind)
    by = found.get("property") or found.get("end") or found["error"]
    return Kill(by, program.id)


@dataclass
class ProgramsVerdict:
    """What the exhaustive programs say of a mutant."""

    kill: Kill | None = None
    capped: list[str] = field(default_factory=list)
    """The programs that have more schedules than were run."""
    programs: int = 0
    """How many come to the change at all."""


def judge_by_programs(
    system: str,
    lib: ModuleType,
    block: str = "",
    known: Mapping[str, ProgramProfile] | None = None,
    most: int = ALL,
) -> ProgramsVerdict:
    """Run the programs that come to a block (all, if none is named) over a mutant, until one catches it."""
    known = profiles(system) if known is None else known
    found = [p for p in PROGRAMS.values() if p.reference == system]
    chosen = [p for p in found if not block or block in known[p.id].blocks]
    chosen.sort(key=lambda p: known[p.id].executions)
    verdict = ProgramsVerdict(programs=len(chosen))
    waves = [(p, min(FEW, most), p.properties, False) for p in chosen]
    waves += [(p, min(FEW, most), (), True) for p in chosen if not known[p.id].races]
    few = len(waves)
    for p in chosen:  # most mutants are caught by now
        executions = most if known[p.id].exhausted else min(SOME, most)
        waves.append((p, executions, tuple(known[p.id].properties), not known[p.id].races))
    for n, (program, executions, properties, attributes) in enumerate(waves):
        allow(SECONDS)
        steps = 4 * known[program.id].depth + 200
        judge = Judge(properties)
        try:
            result = run(program, lib, judge, executions, steps, attributes=attributes)
        except Exception as error:  # in the set-up, or because a property cannot read the history
            verdict.kill = Kill(f"raises {type(error).__name__} outside the threads", program.id)
            return verdict
        verdict.kill = kill_of(program, result)
        if verdict.kill is not None:
            return verdict
        if n >= few and not result.exhausted:
            verdict.capped.append(program.id)
    return verdict


def judge_by_matrix(system: str, lib: ModuleType) -> Kill | None:
    """Run every pair of calls over a mutant, judged by properties and by the outcome oracle.

    None too where a program is capped, and for a system without a matrix.
    """
    for name, of in MATRICES.items():
        allow(MATRIX_SECONDS)
        if of.reference == system:
            found = first_problem(name, lib, MATRIX_DEPTH, MATRIX_EXECUTIONS)
            if found is not None:
                by = found.what.partition(":")[0]
                return Kill(by, f"{name} {found.key}")
    return None


_own_process = False
"""Whether this process judges one mutant and nothing else."""


def allow(seconds: int) -> None:
    """End this process when it has used so many seconds of the processor from now on, if it judges one mutant only."""
    if not _own_process:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def modules_with(file: str, text: str) -> ModuleType:
    """The modules of a system, of which one has another text; raises what its code raises."""
    system = system_of(file)
    assert system is not None, f"{file} is of no system"
    texts = {m: text if m == file else source(m) for m in SYSTEMS[system]}
    code = {m: compile(t, f"<mutant {m}>", "exec") for m, t in texts.items()}
    return run_modules(code, "mutant")


def judged_exhaustively(file: str, text: str, output: str, block: str, most: str) -> None:
    """Judge a mutant by programs and matrix, write what caught it into a file, and end this process.

    `block` is where the change is, and `most` how many executions of a program are run at most.
    """
    global _own_process  # this process was made for one mutant
    _own_process = True
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    code = 0
    for line, outcome in _said(file, text, block, int(most)):
        print(line)
        code = outcome
    sys.stdout.flush()
    os._exit(code)


def _said(file: str, text: str, block: str, most: int) -> Iterator[tuple[str, int]]:
    system = system_of(file) or ""
    try:
        lib = modules_with(file, text)
    except Exception as error:
        yield f"does not load in {type(error).__name__}", CAUGHT
        return
    verdict = judge_by_programs(system, lib, block, most=most)
    kill = verdict.kill or judge_by_matrix(system, lib)
    if kill is not None:
        yield str(kill), CAUGHT
    elif verdict.capped:
        yield f"capped: {', '.join(verdict.capped)}", CAPPED
    else:
        yield f"not caught by {verdict.programs} programs", 0
