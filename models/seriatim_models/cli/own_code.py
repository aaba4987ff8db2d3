"""`seriatim check FILE.py::test`: plain tests of one's own, under every schedule."""

from __future__ import annotations

import ast
import atexit
import bdb
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seriatim_models.cli.console import ProgressCallback
from seriatim_models.cli.jobs import SearchOptions, run_jobs
from seriatim_models.cli.report_builder import property_catalogue
from seriatim_models.cli.usage_errors import UsageError, unknown
from seriatim_models.properties.base import Verdict
from seriatim_models.report import CounterexampleSummary, ProgramRun
from seriatim_models.report.stepper import annotated, story

if TYPE_CHECKING:
    from seriatim_models.explorer.python import PythonResult
    from seriatim_models.explorer.python.program import Target


# Two, as there are two of those in whose place they stand.
_NOWHERE = [open(os.devnull, "w", encoding="utf-8", errors="replace") for _ in range(2)]  # noqa: SIM115 - until the end
for _file in _NOWHERE:
    atexit.register(_file.close)


ROOT_FILES = (
    "pyproject.toml",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "setup.cfg",
    "setup.py",
    ".git",
)
"""Files of which one is in the folder where pytest stops to look for `conftest.py`."""


def is_own(name: str) -> bool:
    """Whether an argument of `check` names a file of Python and no program of the project."""
    return name.partition("::")[0].endswith(".py")


def tests_in(name: str) -> list[tuple[Target, str]]:
    """The tests that ``FILE.py``, ``FILE.py::Class`` or ``FILE.py::test`` names, each with why it cannot be run, or "".

    Raises `UsageError` for a name of nothing.
    """
    from seriatim_models.explorer.python.program import Target

    file, *parts = name.split("::")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file!r}")
    try:
        tree = ast.parse(path.read_bytes(), file)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{file} is no Python: {error}") from error
    module = path.stem
    found = dict(_functions(tree))
    wanted = ".".join(parts)
    inherited = _inherited_from(tree)
    tests = [
        name
        for name in found
        if name.rpartition(".")[2].startswith("test") and name.rpartition(".")[0] not in inherited
    ]
    if not tests and wanted not in found:
        raise UsageError(f"{file} has no function whose name begins with test")
    of_class = [
        n for n in found if n.startswith(f"{wanted}.test") and n.rpartition(".")[0] == wanted
    ]
    if wanted in found or (len(parts) == 2 and _may_have(tree, *parts)):
        tests = [wanted]
    elif wanted and of_class:
        tests = of_class
    elif _has_bases_elsewhere(tree, wanted):
        raise UsageError(
            f"{wanted} has its tests from another file: name one, {file}::{wanted}::test_..."
        )
    elif wanted:
        raise unknown("test", wanted, found, f"grep 'def test' {shlex.quote(file)}")
    return [
        (Target(module, str(path.resolve()), test), _refusal(file, test, found)) for test in tests
    ]


def _refusal(
    file: str, test: str, found: Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]
) -> str:
    """Why a test cannot be run as a program, as far as its file shows; "" if it can."""
    owner = test.rpartition(".")[0]
    for name in (test, f"{owner}.__init__"):
        if name in found and (needed := _parameter(name, found[name])):
            return (
                f"{file}:{found[name].lineno}: {name} has the parameter {needed}, and a test that is explored here "
                "takes no fixtures: pytest runs one with fixtures, parametrize or @given (`seriatim help pytest`)"
            )
    around = [(file, n, node) for n, node in found.items() if n.rpartition(".")[0] in ("", owner)]
    for where, name, node in (*around, *_of_folders(Path(file))):
        if _is_around_all(node):
            return (
                f"{where}:{node.lineno}: pytest calls {name} around {test}, and a test that is explored here "
                "takes no fixtures: mark it @pytest.mark.explore and run pytest --explore"
            )
    return ""


def _of_folders(file: Path) -> Iterator[tuple[str, str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of each `conftest.py` that pytest reads for a file: of its folder and all above, up to the root."""
    for folder in file.resolve().parents:
        path = folder / "conftest.py"
        with suppress(
            OSError, SyntaxError, ValueError
        ):  # one that pytest cannot read, it names itself
            for name, node in _functions(ast.parse(path.read_bytes())):
                if "." not in name:
                    yield os.path.relpath(path), name, node
        if any((folder / name).exists() for name in ROOT_FILES):
            return


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of a file, and the methods of its classes with those from other classes of the file."""
    classes = _classes(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            methods = [
                inner
                for kind in reversed(_with_bases(node, classes))
                for inner in kind.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
            for name, inner in {m.name: m for m in methods}.items():
                yield f"{node.name}.{name}", inner


def _classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _with_bases(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """A class and the classes of its file that it is made from, in which Python looks for a method, in this order."""
    found = [node]
    for base in node.bases:
        known = classes.get(ast.unparse(base))
        if known is not None and known.lineno < node.lineno:
            further = _with_bases(known, classes)
            found = [kind for kind in found if kind not in further] + further
    return found


def _has_bases_elsewhere(tree: ast.Module, name: str) -> bool:
    """Whether a class may have methods that its file does not show."""
    classes = _classes(tree)
    return name in classes and any(
        ast.unparse(base) not in classes
        for kind in _with_bases(classes[name], classes)
        for base in kind.bases
    )


def _may_have(tree: ast.Module, name: str, test: str) -> bool:
    """Whether a class may have a test that no `def` of the file shows: from another file, or by an assignment."""
    of_class = _with_bases(_classes(tree)[name], _classes(tree)) if name in _classes(tree) else []
    assigned = (t for k in of_class for n in k.body if isinstance(n, ast.Assign) for t in n.targets)
    return _has_bases_elsewhere(tree, name) or test in map(ast.unparse, assigned)


def _inherited_from(tree: ast.Module) -> set[str]:
    """Classes whose tests are for the classes made from them: no test cases, and named otherwise than Test...

    Or mixed into a test case, as the tests of Python itself are.
    """
    classes = _classes(tree)
    return {
        base.name
        for node in classes.values()
        for base in _with_bases(node, classes)[1:]
        if not _has_bases_elsewhere(tree, base.name)
        and (not base.name.startswith("Test") or _has_bases_elsewhere(tree, node.name))
    }


def _parameter(test: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The last parameter that nobody gives; "" if there is none."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    arguments = arguments[1:] if "." in test else arguments  # without self
    given = len(node.args.defaults) + sum(map(_gives_a_mock, node.decorator_list))
    return arguments[len(arguments) - given - 1].arg if len(arguments) > given else ""


def _is_around_all(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a fixture of pytest that tests get without asking for it."""
    return any(
        ast.unparse(call.func).rpartition(".")[2] == "fixture"
        and any(k.arg == "autouse" and ast.unparse(k.value) != "False" for k in call.keywords)
        for call in node.decorator_list
        if isinstance(call, ast.Call)
    )


def _gives_a_mock(decorator: ast.expr) -> bool:
    """Whether it is `patch(target)` or `patch.object(target, name)` of `unittest.mock`, which passes what it makes."""
    if not isinstance(decorator, ast.Call) or any(k.arg == "new" for k in decorator.keywords):
        return False
    words = ast.unparse(decorator.func).split(".")
    needed = 2 if words[-2:] == ["patch", "object"] else 1
    return (words[-1] == "patch" or needed == 2) and len(decorator.args) == needed


def own_runs(
    names: tuple[str, ...],
    search: SearchOptions,
    modules: tuple[str, ...],
    token: str | None,
    processes: int | None = None,
    debugging: bool = False,
) -> list[ProgramRun]:
    """Run each test under its schedules, or under the one of a token; so many side by side. Raises `UsageError`.

    `debugging`: stop in a debugger where the schedule of the token goes wrong.
    """
    found = [(name, target, why) for name in names for target, why in tests_in(name)]
    refused = [why for _, _, why in found if why]
    if len(refused) == len(found):
        raise UsageError(refused[0])
    jobs = [
        OwnTest(name, target, search, modules, token, debugging, why, len(found) == 1)
        for name, target, why in found
    ]
    if debugging:
        return [job.run() for job in jobs]
    return run_jobs(jobs, "tests", processes)


@dataclass(frozen=True)
class OwnTest:
    """One test under one search."""

    asked: str
    """What the command line called it, or its file."""
    target: Target
    search: SearchOptions
    modules: tuple[str, ...]
    token: str | None
    debugging: bool = False
    refusal: str = ""
    alone: bool = False
    """Whether there is no other; of several one that cannot be explored does not keep the others from it."""

    @property
    def name(self) -> str:
        """The name under which its progress is shown."""
        return f"{Path(self.target.path).name}::{self.target.name}"

    def run(self, on_progress: ProgressCallback | None = None, processes: int = 1) -> ProgramRun:
        """Explore it, in as many processes as `processes`. Raises `UsageError` if it cannot be, and is alone."""
        if self.refusal:
            return refused_run(self.target, self.refusal, self.search, self.modules)
        from seriatim_models.explorer import Dpor, ExplorerError, Pct, Pos, Random, Replay, Watch
        from seriatim_models.explorer.python.debugger import step_to_stop_at
        from seriatim_models.explorer.python.execution import Search
        from seriatim_models.explorer.python.front import explored, known_modules

        search = self.search
        with unheard():  # what a program finds in `sys.stdout` is where nothing is shown
            state = Search()
        state.timers = search.timers
        state.races_are_errors = search.attributes
        strategies: dict[str, Any] = {"random": Random, "pct": Pct, "pos": Pos}
        strategy: Any = Dpor(symmetry=search.symmetry)
        if self.token is not None:
            strategy = Replay(self.token)
        elif search.strategy != "dpor":
            strategy = strategies[search.strategy](seed=search.seed or 0)
        split = isinstance(strategy, Dpor) and not search.symmetry
        options: dict[str, Any] = {"jobs": processes if split else 1}
        if on_progress is not None:
            options["progress"] = Watch(lambda p: on_progress(p.executions, str(p)))
        with importable(Path(self.target.path).parent):
            try:
                with unheard():
                    known_modules(self.modules)
                    result = explored(
                        self.target, state, strategy, self.modules, search.seconds, options
                    )
                if self.debugging and result.counterexample is not None:
                    state.stop_at = step_to_stop_at(result.counterexample)
                    with suppress(bdb.BdbQuit):
                        explored(self.target, state, strategy, self.modules, None, {})
            except ExplorerError as error:
                if self.alone:
                    raise UsageError(f"{self.asked}: {error}") from error
                return refused_run(self.target, str(error), search, self.modules)
            with unheard():  # the story of a counterexample runs it again
                return own_run(self.target, result, search, self.modules)


@contextmanager
def unheard() -> Iterator[None]:
    """What is written to `sys.stdout` and `sys.stderr` goes nowhere, as that of a test that pytest runs: a test prints
    it in each of thousands of schedules, between lines of ours, and a terminal would obey it.
    """
    with redirect_stdout(_NOWHERE[0]), redirect_stderr(_NOWHERE[1]):
        yield


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """The modules beside a test can be imported while it runs, as `python FILE.py` would have it."""
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.resolve()))


def refused_run(
    target: Target, why: str, search: SearchOptions, modules: tuple[str, ...]
) -> ProgramRun:
    """What is said of a test that cannot be explored, beside others that can: inconclusive, with no execution."""
    from seriatim_models.explorer.python import PythonResult

    return own_run(target, PythonResult(why=f"it cannot be explored: {why}"), search, modules)


def own_run(
    target: Target, result: PythonResult, search: SearchOptions, modules: tuple[str, ...]
) -> ProgramRun:
    """The result as data of the report."""
    named = [word for module in modules for word in ("--module", module)]
    bounds = (
        "One step is one Python operation on a shared place; memory is sequentially consistent."
    )
    exchanged = ""
    if result.unreduced is not None and result.traces is not None:
        exchanged = "no threads were exchanged"
        if result.unreduced != result.traces:
            exchanged = (
                f"with identical threads distinguished there are {result.unreduced:,} traces"
            )
        bounds += f" {exchanged[0].upper()}{exchanged[1:]}."
    case = result.counterexample
    summary = None
    if case is not None:
        text = case.text().rpartition("\n\nreplay: ")[0]  # the command is said by itself
        text += f"\n\n{result.traceback}" if result.traceback else ""
        summary = CounterexampleSummary(
            token=case.token,
            steps=len(case.events),
            text=text,
            story=annotated(story(case, [], property_catalogue(), result.traceback), case),
        )
    return ProgramRun(
        program=f"{Path(target.path).name}::{target.name.replace('.', '::')}",
        title=f"{target.name} of {Path(target.path).name}",
        strategy=search.strategy,
        verdict=Verdict(result.verdict),
        exhausted=result.exhausted,
        traces=result.traces,
        complete=result.complete,
        blocked=result.blocked,
        seconds=result.seconds,
        bounds=bounds,
        exchanged=exchanged,
        why=result.why,
        limits={name: limit for name, limit in result.bounds.items() if limit is not None},
        findings=[],
        command=shlex.join(["seriatim", "check", target.address, *named, *search.options]),
        counterexample=summary,
    )
