"""`seriatim audit` over a file: the profiles it is consistent with, in every form of report, and the smallest part."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from seriatim_models.cli import run
from seriatim_models.conformance.profiles import SYSTEMS
from seriatim_models.history import Header, read_history, write_history
from seriatim_models.report.audit_text import profile_lines
from seriatim_workshop.bench.simulated_broker import SimulatedBroker


@pytest.fixture
def late(tmp_path: Path) -> Path:
    """A recording of a broker that gives back to the tail."""
    path = tmp_path / "late.jsonl"
    write_history(path, SimulatedBroker(1, 200, fault="tail").run(), Header(run="late", lvl="api"))
    return path


def test_one_property_rules_out_and_several_rule_out() -> None:
    shown = Console(file=StringIO(), width=80)
    ruled_out = {"a": ["P1"], "b": ["P1", "P2"], "c": ["P1", "P2"]}
    for line in profile_lines([], ruled_out, []):
        shown.print(line)
    assert isinstance(shown.file, StringIO)
    assert [line.rstrip() for line in shown.file.getvalue().split("\n")] == [
        "  P1 rules out a",
        "  P1, P2 each rule out b, c",
        "",
    ]


def test_every_report_names_the_profiles_that_a_recording_is_consistent_with(
    late: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: tmp_path / f"report.{name}" for name in ("json", "html", "junit")}
    options = [part for name, file in files.items() for part in (f"--{name}", str(file))]
    assert run(["audit", str(late), "--profile", "rabbit-quorum", *options]) == 0
    shown = capsys.readouterr().out
    assert "consistent with " in shown
    assert "P6 rules out rabbit-classic, strict-qpid" in shown
    found = json.loads(files["json"].read_text())
    consistency = {s["profile"]: s for s in found["audits"][0]["standings"]}
    assert consistency["rabbit-quorum"]["verdict"] == "ok"
    for profile in ("strict-qpid", "rabbit-classic"):
        assert consistency[profile]["verdict"] == "violated"
        assert consistency[profile]["broken"][0]["property"] == "P6"
        assert (
            len(consistency[profile]["broken"][0]["witness"]) == 8
        )  # with the answers by which others were there
    assert "is consistent with (ok), or not (violated)" in files["html"].read_text()
    suites = ET.parse(files["junit"]).getroot()
    cases = suites.findall("./testsuite[@name='profiles']/testcase")
    assert len(cases) == len(SYSTEMS)
    skipped = {c.attrib["name"] for c in cases if c.find("skipped") is not None}
    assert skipped >= {"late: strict-qpid", "late: rabbit-classic", "late: at-least-once-log"}
    assert "late: rabbit-quorum" not in skipped


def test_a_violation_is_drawn_and_shrunk(
    late: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, found = tmp_path / "small.jsonl", tmp_path / "found.json"
    asked = ["audit", str(late), "--profile", "strict-qpid", "--shrink", str(small)]
    assert run([*asked, "--json", str(found)]) == 1
    shown = capsys.readouterr().out
    assert "is back (event" in shown
    assert "events still violate it" in shown
    [violated] = [r for r in json.loads(found.read_text())["results"] if r["verdict"] == "violated"]
    assert violated["intervals"][0].keys() == {"lane", "lo", "hi", "label", "event", "convicts"}
    assert len(read_history(small).events) < 40
    assert run(["audit", str(small), "--profile", "strict-qpid"]) == 1


def test_a_profile_of_ones_own_decides(late: Path, tmp_path: Path) -> None:
    from seriatim_models.conformance.profiles import ORACLE

    rows = ['format = "seriatim-profile/1"', 'id = "mine"', 'title = "mine"']
    rows += ["[[promise]]", 'property = "P6"', 'source = "mine"', "within = 3"]
    for p in ORACLE:
        if p.id != "P6":
            rows += ["[[silent]]", f'property = "{p.id}"', 'why = "-"']
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(rows))
    assert run(["audit", str(late), "--profile", str(path)]) == 1
    path.write_text("\n".join(rows).replace("within = 3", "within = 100000"))
    assert run(["audit", str(late), "--profile", str(path)]) == 0


def test_rejects_a_profile_that_is_none(
    late: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("format = 1")
    assert run(["audit", str(late), "--profile", str(path)]) == 2
    assert "mine.toml: " in capsys.readouterr().err
    assert run(["audit", str(late), str(late), "--profile", "any", "--shrink", "x.jsonl"]) == 2
