"""The JUnit document: one name, one case."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from seriatim_models.cli import run
from seriatim_models.history import Event, write_history

ORPHAN = [
    Event(i=0, t=0, ev="publish", m="m0", q="q"),
    Event(i=1, t=1, ev="deliver", m="m\t<9>\x1b", q="q"),
]


@pytest.fixture
def document(tmp_path: Path) -> Callable[..., ET.Element]:
    def made(*arguments: str) -> ET.Element:
        path = tmp_path / "verdicts.xml"
        assert run([*arguments, "--junit", str(path)]) == 1
        return ET.parse(path).getroot()

    return made


def names(root: ET.Element) -> list[tuple[str, str]]:
    return [(case.attrib["classname"], case.attrib["name"]) for case in root.iter("testcase")]


def test_each_recording_of_an_audit_has_cases_of_its_own(
    document: Callable[..., ET.Element], tmp_path: Path
) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name in ("one", "two"):
        write_history(folder / f"{name}.jsonl", ORPHAN)
    found = names(document("audit", str(folder)))
    assert len(set(found)) == len(found)
    assert {(str(folder), "P1 in one"), (str(folder), "P1 in two")} <= set(found)
    assert names(document("audit", str(folder))) == found, "a server compares runs by name"


def test_a_failure_says_where_its_events_are(
    document: Callable[..., ET.Element], tmp_path: Path
) -> None:
    write_history(tmp_path / "one.jsonl", ORPHAN)
    failures = list(document("audit", str(tmp_path / "one.jsonl")).iter("failure"))
    assert failures
    assert all("run one, event 1: deliver m\u2409<9>\u241b" in str(f.text) for f in failures)


def test_programs_of_one_name_are_numbered_apart(document: Callable[..., ET.Element]) -> None:
    line = ("check", "immediate-race", "immediate-race", "--mutant", "published-immediate")
    found = names(document(*line))
    assert len(set(found)) == len(found)
