"""How the code is written, as far as a machine can judge it; each message says how to mend what broke a rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .conftest import SAMPLED
from .test_house import ROOT, modules, tree_of

LINES_MOST = 60
"""A longer function needs its reason in a comment above it that begins with ``# Long:``."""


EXPLAINED = {
    "spec/conform/README.md explains the commands": re.compile(
        r"open|close|publish|qos|consume|cancel|get|ack|nack|reject|recover"
    ),
    "do_X performs operation X of a generated program": re.compile(r"do_\w+"),
}
"""Methods that need no docstring of their own, by where they are explained: of classes only."""


@dataclass(frozen=True)
class Class:
    """A class, with what its docstring rules depend on."""

    path: Path
    node: ast.ClassDef

    @property
    def bases(self) -> list[str]:
        """The names of its bases, without modules and parameters."""
        plain = [b.value if isinstance(b, ast.Subscript) else b for b in self.node.bases]
        return [b.attr if isinstance(b, ast.Attribute) else ast.unparse(b) for b in plain]

    def documents(self, method: str) -> bool:
        """Whether it has the method with a docstring."""
        return any(
            isinstance(m, ast.FunctionDef) and m.name == method and ast.get_docstring(m)
            for m in self.node.body
        )


@cache
def trees() -> dict[Path, ast.Module]:
    """The syntax tree of every file."""
    return {path: tree_of(path) for _, path in modules()}


@cache
def classes() -> dict[str, list[Class]]:
    """Every class, by its name."""
    found: dict[str, list[Class]] = {}
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(Class(path, node))
    return found


@cache
def protocols() -> list[Class]:
    """The classes that are protocols."""
    return [c for named in classes().values() for c in named if "Protocol" in c.bases]


OURS = {"Protocol", "Generic", "Struct", "NamedTuple", "Exception", "ValueError", "Enum", "StrEnum"}


def inherits_docstring(owner: Class, method: str) -> bool:
    """Whether a base documents the method, or a protocol that the class satisfies; bases from elsewhere do."""
    if any(p.documents(method) for p in protocols()):
        return True
    for base in owner.bases:
        if base not in classes():
            if base not in OURS:
                return True
        elif any(c.documents(method) or inherits_docstring(c, method) for c in classes()[base]):
            return True
    return False


def has_sentence(node: ast.ClassDef) -> bool:
    """Whether a class is a property with its sentence, which says what it is."""
    return any(
        isinstance(a, ast.Assign) and ast.unparse(a.targets[0]) == "sentence" for a in node.body
    )


def is_field(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a member of a protocol is no more than a typed attribute."""
    return [ast.unparse(d) for d in node.decorator_list] == ["property"] and [
        ast.unparse(part) for part in node.body
    ] == ["..."]


def undocumented(path: Path, body: list[ast.stmt], owner: Class | None = None) -> Iterator[str]:
    """Public classes, functions and methods without a docstring."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        where = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        if isinstance(node, ast.ClassDef):
            if ast.get_docstring(node) is None and not has_sentence(node):
                yield where
            yield from undocumented(path, node.body, Class(path, node))
        elif ast.get_docstring(node) is None:
            if owner is not None and any(p.fullmatch(node.name) for p in EXPLAINED.values()):
                continue
            if owner is not None and "Protocol" in owner.bases and is_field(node):
                continue
            decorated = {ast.unparse(d).rpartition(".")[2] for d in node.decorator_list}
            if not decorated & {"setter", "overload"} and not (
                owner is not None and inherits_docstring(owner, node.name)
            ):
                yield where


def test_every_public_name_says_what_it_is() -> None:
    silent = [name for path, tree in trees().items() for name in undocumented(path, tree.body)]
    assert not silent, (
        "\n".join(silent)
        + "\nbegin each with a docstring whose first line says what it returns or does; "
        "a method that overrides a documented one needs none"
    )


def reasoned(lines: list[str], first: int, at: int) -> bool:
    """Whether a reason stands above a function, or behind its name beside a suppressed rule."""
    return lines[first - 2].strip().startswith("# Long:") or bool(
        re.search(r"# noqa: C901.*  # \w", lines[at - 1])
    )


def test_no_function_is_long_without_its_reason() -> None:
    long = []
    for path, tree in trees().items():
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LINES_MOST and not reasoned(lines, first, node.lineno):
                    long.append(
                        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}, {length} lines"
                    )
    assert not long, (
        "\n".join(long) + f"\nsplit what is longer than {LINES_MOST} lines at a natural joint, "
        "or say why not in the line above, beginning with '# Long:'"
    )


def test_the_map_names_files_that_exist() -> None:
    """Of spec/ARCHITECTURE.md: each path is that of a file, from the root or from a package."""
    text = (ROOT / "spec" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    files = {path.as_posix() for path in (*ROOT.glob("*"), *ROOT.glob("[a-z]*/**/*"))}
    named = {path.rstrip("/") for path in re.findall(r"`([\w./]+/[\w./]*)(?::\w+)?`", text)}
    lost = sorted(path for path in named if not any(f.endswith(f"/{path}") for f in files))
    assert not lost, f"spec/ARCHITECTURE.md names {', '.join(lost)}: say where that is now"


def test_what_is_sampled_is_there() -> None:
    gone = [
        address
        for address in SAMPLED
        for file, _, name in [address.partition("::")]
        if not (ROOT / file).exists() or f"\ndef {name}(" not in (ROOT / file).read_text()
    ]
    assert not gone, f"SAMPLED in tests/conftest.py names tests that are not there: {gone}"


def test_what_is_left_to_the_night_is_a_case_beside_another() -> None:
    """So nothing is looked at by night only: `pytest.mark.night` stands in a `pytest.param`, beside one without it."""
    params = re.compile(r"pytest\.param\([^\n]*marks=pytest\.mark\.night[^\n]*\)")
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    used = {p: p.read_text(encoding="utf-8") for p in files if p.name != "test_style.py"}
    wrong = [
        str(p.relative_to(ROOT))
        for p, text in used.items()
        if text.count("pytest.mark.night") != len(params.findall(text))
    ]
    assert not wrong, f"{wrong}: mark a case, `pytest.param(..., marks=pytest.mark.night)`"
    assert any("pytest.mark.night" in text for text in used.values())
