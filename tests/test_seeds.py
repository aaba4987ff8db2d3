"""Every name in spec/SEEDS.md is one of the project: properties, programs, mutants, modules and what is in them."""

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

from seriatim_models.programs import MUTANTS, PROGRAMS
from seriatim_models.properties import PROPERTIES
from seriatim_workshop import broker_mistakes

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "spec" / "SEEDS.md"
SEEDS = (
    "Consumer-Queue Interactions",
    "Strict Ordering",
    "The RabbitMQ Threading Model",
    "Building A Queue, Part 4",
    "Fair Consuming with RabbitMQ",
)


def sections(text: str) -> dict[str, str]:
    """The page's text below each heading."""
    return dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n?)*)", text, re.MULTILINE))


def rows(section: str) -> list[list[str]]:
    """The cells of a section's tables, without their heads."""
    table = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [row.split(" | ") for row in table if not row.startswith(("mechanism |", "bug |"))]


def unknown(text: str) -> list[str]:
    """The names in a text that stand for nothing."""
    ids = re.findall(r"\b[A-Z]{2,3}-\d+\b", text)
    names = [n for n in re.findall(r"`([^`]+)`", text) if not n.startswith("seriatim ")]
    return [i for i in ids if i not in PROPERTIES] + [n for n in names if not known(n)]


def known(name: str) -> bool:
    """Whether a name in backquotes is a program, a mutant, a file, or something in a module of the reference."""
    module, colon, path = name.partition(":")
    if not colon:
        return (
            name in PROGRAMS
            or name in MUTANTS
            or (name.endswith(".py") and (ROOT / "models" / "seriatim_models" / name).is_file())
        )
    try:
        reduce(getattr, path.split("."), importlib.import_module(f"seriatim.{module}"))
    except (ImportError, AttributeError):
        return False
    return True


def tables() -> list[tuple[str, list[str]]]:
    found = sections(PAGE.read_text(encoding="utf-8"))
    return [(title, row) for title, section in found.items() for row in rows(section)]


def test_every_seed_has_its_table() -> None:
    found = sections(PAGE.read_text(encoding="utf-8"))
    for seed in SEEDS:
        assert len(rows(found[seed])) > 10, seed


@pytest.mark.parametrize(("title", "row"), tables())
def test_names_of_a_row_stand_for_something(title: str, row: list[str]) -> None:
    assert all(cell.strip() for cell in row)
    assert unknown(" ".join(row)) == []


@pytest.mark.parametrize(("title", "row"), [t for t in tables() if "number" not in t[0]])
def test_a_mechanism_is_modelled_somewhere_or_it_is_said_why_not(
    title: str, row: list[str]
) -> None:
    _, where, checked_by = row
    modelled = re.search(r"`\w+:[\w.]+`", where)
    assert modelled or re.match(r"not modelled: .", where), f"{title}: {where}"
    if modelled:
        assert re.search(r"[A-Z]{2,3}-\d+|`[a-z-]+`", checked_by), f"{title}: {checked_by}"


@pytest.mark.parametrize(("title", "row"), [t for t in tables() if "number" not in t[0]])
def test_programs_and_mutants_of_a_row_are_about_its_properties(title: str, row: list[str]) -> None:
    ids = set(re.findall(r"\b[A-Z]{2,3}-\d+\b", row[2]))
    for name in re.findall(r"`([a-z-]+)`", row[2]):
        about = (
            {MUTANTS[name].killed_by, *MUTANTS[name].also}
            if name in MUTANTS
            else set(PROGRAMS[name].properties)
        )
        assert not ids or ids & about, f"{title}: {name} is about {sorted(about)}"


@pytest.mark.parametrize(
    "text", ["XY-99", "`no-such-program`", "`queue:Queue.no_such`", "`nowhere:Queue`", "`no.py`"]
)
def test_a_name_that_stands_for_nothing_is_seen(text: str) -> None:
    assert len(unknown(text)) == 1


def test_mistakes_of_the_broker_are_those_of_the_catalogue() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert broker_mistakes.renewed(text) == text, (
        "run python -m seriatim_workshop.broker_mistakes spec/SEEDS.md and look at the difference"
    )


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / target).exists(), target
