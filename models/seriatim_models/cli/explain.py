"""`seriatim explain`: what a name means that a command printed, and where to go on from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from difflib import ndiff
from functools import cache
from typing import TYPE_CHECKING

import rich_click as click
from rich.text import Text

from seriatim_models.cli.console import Outputs
from seriatim_models.cli.options import HELP, lines
from seriatim_models.cli.report_builder import property_catalogue
from seriatim_models.cli.usage_errors import UsageError, unknown
from seriatim_models.report.terminal import indented

if TYPE_CHECKING:
    from seriatim_models.programs.bug_catalogue import BugCase
    from seriatim_models.report.lessons import Lesson

Part = tuple[str, str]
"""A label, and what stands beside it."""

WORDS: dict[str, list[Part]] = {
    "violated": [
        (
            "verdict",
            "No behaviour that the events, what they leave open and the declared meanings allow explains them.",
        ),
        (
            "shown",
            "The events of the witness violate the property by themselves; where they do not, it is said.",
        ),
        ("exit code", "1"),
    ],
    "ok": [
        (
            "verdict",
            "There was a case, one in which a wrong system could have done otherwise, and none was wrong.",
        ),
        ("exit code", "0"),
    ],
    "inconclusive": [
        (
            "verdict",
            "There was no case, or what was seen leaves the cases open, or not every schedule was run.",
        ),
        (
            "go on",
            "The reason stands beside it, and what to record or drive so that it becomes testable.",
        ),
        ("exit code", "3, if nothing is violated and this decides the verdict of the whole"),
    ],
    "0": [("exit code", "All is well: something was tested, and nothing is wrong.")],
    "1": [("exit code", "A property is violated, or a mutant survived, or a self-test failed.")],
    "2": [("exit code", "Bad usage or unreadable input; a sentence on standard error says which.")],
    "3": [("exit code", "Inconclusive: nothing broke, but not everything was seen.")],
    "70": [("exit code", "A fault of seriatim itself, with its traceback: please report it.")],
    "130": [
        ("exit code", "Interrupted by Ctrl-C (143: by SIGTERM); what was written before is whole.")
    ],
}


@click.command(
    epilog=lines(
        """
        [bold]Examples[/]
        seriatim explain IM-1                  a property: sentence and source
        seriatim explain rabbit-quorum         a profile: each promise with its source
        seriatim explain immediate             a program
        seriatim explain published-immediate   a mutant, and its smallest edit
        seriatim explain F-1                   a finding: what breaks, and the repair
        seriatim explain QPID-2900             a case of the bug catalogue
        seriatim explain lesson-7              a lesson: its question
        seriatim explain inconclusive          a verdict
        seriatim explain 3                     an exit code
        """
    )
)
@click.argument("name", metavar="NAME")
@click.rich_config(help_config=HELP)
def explain(name: str) -> int:
    """Explain a name that a command or page printed: a property, program, mutant, finding, bug, verdict, exit code."""
    from seriatim_models.conformance.profiles import PROFILES
    from seriatim_models.programs import MUTANTS, PROGRAMS

    kinds: list[tuple[str, Iterable[str], Callable[[str], Iterator[Part]]]] = [
        ("property", property_catalogue(), _property),
        ("profile", PROFILES, _profile),
        ("program", PROGRAMS, _program),
        ("mutant", MUTANTS, _mutant),
        ("finding", _findings(), _finding),
        ("bug", _bugs(), _bug),
        ("lesson", _lessons(), _lesson),
        ("", WORDS, lambda word: iter(WORDS[word])),
    ]
    found = [
        (kind, id, parts) for kind, ids, parts in kinds for id in ids if id.lower() == name.lower()
    ]
    if not found:
        every = [id for _, ids, _ in kinds for id in ids]
        raise unknown("such name as", name, every, "seriatim list --help")
    console = Outputs().console
    for kind, id, parts in found:
        console.print(Text(f"{id}, a {kind}" if kind else id, style="bold"))
        for label, text in parts(id):
            console.print(indented(Text.assemble((f"{label}: ", "bold"), text)))
    return 0


def _property(id: str) -> Iterator[Part]:
    from seriatim_models.conformance.profiles import PROFILES
    from seriatim_models.programs import MUTANTS, PROGRAMS

    found = property_catalogue()[id]
    yield "says", found.sentence
    yield "source", found.source
    yield "kind", found.kind
    if found.case:
        yield "a case", f"it takes {found.case}"
    yield "programs", _few([p.id for p in PROGRAMS.values() if id in p.properties])
    yield "profiles", _few([p.id for p in PROFILES.values() if id in {q.id for q in p.properties}])
    yield (
        "mutants that violate it",
        _few([m.id for m in MUTANTS.values() if id in (m.killed_by, *m.also)]),
    )
    yield from _places(id)
    first = next((m.id for m in MUTANTS.values() if m.killed_by == id), None)
    if first is not None:
        yield "see it", f"seriatim show {first}"


def _profile(id: str) -> Iterator[Part]:
    from seriatim_models.conformance.profiles import PROFILES

    found = PROFILES[id]
    yield "of", found.title
    for promise in found.promises:
        core = ", core" if promise.property in found.core else ""
        yield f"promises {promise.property}{core}", promise.source
    for silent in found.silent:
        yield f"says nothing of {silent.property}", silent.why
    yield "judge by it", f"seriatim audit FILE --profile {id}"


def _program(id: str) -> Iterator[Part]:
    from seriatim_models.programs import MUTANTS, PROGRAMS

    found = PROGRAMS[id]
    yield "what meets what", found.title
    yield "runs", f"reference/seriatim/{found.reference}.py"
    yield "tests", ", ".join(found.properties)
    yield "bounds", found.beyond
    yield "schedules", f"{found.traces:,} that differ"
    yield "mutants that it detects", _few([m.id for m in MUTANTS.values() if m.program == id])
    yield "run it", f"seriatim check {id}"


def _mutant(id: str) -> Iterator[Part]:
    from seriatim_models.programs import MUTANTS

    found = MUTANTS[id]
    yield "mistake", found.title
    yield "origin", found.origin
    for right, wrong in found.edits:
        yield (
            "edit",
            "\n"
            + "\n".join(
                line
                for line in ndiff(right.splitlines(), wrong.splitlines())
                if not line.startswith("?")
            ),
        )
    yield "violates", ", ".join([found.killed_by, *found.also])
    yield "shown by", f"{found.program}, in {found.steps} steps"
    yield from _places(id)
    yield "see it", f"seriatim show {id}"


def _places(id: str) -> Iterator[Part]:
    """The findings and lessons that name it, where they are installed."""
    named = re.compile(rf"(?<![\w-]){re.escape(id)}(?![\w-])")
    found = [finding for finding, text in _findings().items() if named.search(text)]
    if found:
        yield "findings", _few(found) + " (spec/FINDINGS.md)"
    numbers = sorted({c.number for c in _lessons().values() if named.search(c.text)})
    if numbers:
        yield "lessons", ", ".join(f"seriatim learn {n}" for n in numbers)


@cache
def _findings() -> dict[str, str]:
    """The findings by id, from the heading on; none where they are not installed."""
    from seriatim_models.cli.lesson_runner import CHECKOUT

    file = CHECKOUT.parent / "FINDINGS.md"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    sections = re.split(r"^#+ ", text, flags=re.MULTILINE)
    return {s.partition(" ")[0]: s.strip() for s in sections if re.match(r"F-\d+ ", s)}


def _finding(id: str) -> Iterator[Part]:
    heading, _, text = _findings()[id].removeprefix(id).strip().partition("\n")
    title, _, breaks = heading.rpartition(" — ")
    yield "what", title or heading
    if title:
        yield "breaks", breaks
    for paragraph in text.strip().split("\n\n"):
        label, repair, after = paragraph.rpartition("*Repair*: ")
        yield from [("what happens", " ".join(label.split()))] if label.strip() else []
        yield ("repair" if repair else "what happens"), " ".join(after.split())


@cache
def _bugs() -> dict[str, BugCase]:
    """The cases of the bug catalogue by each name that a tracker has for them."""
    from seriatim_models.programs.bug_catalogue import BUG_CASES

    return {name: case for case in BUG_CASES for name in case.bug.split(", ")}


def _bug(id: str) -> Iterator[Part]:
    case = _bugs()[id]
    yield "what happened", case.happened
    yield "repair", case.repair
    yield "mutant", case.mutant + (", the same mistake in another place" if case.alike else "")
    yield "see it", f"seriatim show {case.mutant}"


@cache
def _lessons() -> dict[str, Lesson]:
    """The lessons by number and by file; none where they are not installed."""
    from seriatim_models.cli.lesson_runner import folder
    from seriatim_models.report.lessons import all_in

    try:
        chapters = all_in(folder())
    except UsageError:
        return {}
    return {name: c for c in chapters for name in (f"lesson-{c.number}", c.name)}


def _lesson(id: str) -> Iterator[Part]:
    chapter = _lessons()[id]
    yield "title", chapter.title
    yield "asks", chapter.question
    yield "read it", f"seriatim learn {chapter.number}"
    yield "its exercise", f"seriatim learn {chapter.number} --start mine.py"


def _few(names: list[str], many: int = 8) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - many} more" if len(names) > many else ""
    return ", ".join(names[:many]) + more
