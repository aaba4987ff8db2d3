"""The report as JUnit XML, the form that most CI servers show as a table of tests.

One suite per program, mutant run and audit; one case per property, and per recording in an audit.
A case is known by its class name (what was judged) and name (the property and the recording or program);
no two cases of a document are named alike, and the names of one command are the same each time.
A failure holds the events that show the violation, each with its place in the recording.
An inconclusive finding is a skipped case: neither a pass nor a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree as ET

from seriatim_models.conformance.profile_consistency import ProfileConsistency
from seriatim_models.history import Event
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report.model import MutantRun, Report
from seriatim_models.report.visible import one_line, visible


class JUnitCase(NamedTuple):
    """One test case; `tag` is ``failure`` or ``skipped``, or empty if it passed."""

    name: str
    tag: str = ""
    message: str = ""
    seconds: float | None = None
    text: str = ""


def junit(report: Report) -> bytes:
    """The report as an XML document."""
    root = ET.Element("testsuites", name="seriatim", time=f"{report.seconds:.3f}")
    for run in report.programs:
        name = f"{run.program} ({run.mutant})" if run.mutant else run.program
        _suite(root, name, map(_finding, run.findings), run.seconds)
    for audit in report.audits:
        _suite(root, ", ".join(audit.paths), map(_finding, audit.findings), audit.seconds)
        if audit.standings:
            _suite(root, "profiles", map(_consistency, audit.standings))
    if report.mutants:
        _suite(root, "mutants", map(_mutant, report.mutants))
    _named_apart(root)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _suite(
    root: ET.Element, given: str, cases: Iterator[JUnitCase], seconds: float | None = None
) -> None:
    name = one_line(given)
    suite = ET.SubElement(root, "testsuite", name=name, tests="0", failures="0", skipped="0")
    if seconds is not None:
        suite.set("time", f"{seconds:.3f}")
    counts = {"tests": 0, "failure": 0, "skipped": 0}
    for case in cases:
        element = ET.SubElement(suite, "testcase", classname=name, name=one_line(case.name))
        if case.seconds is not None:
            element.set("time", f"{case.seconds:.3f}")
        if case.tag:
            found = ET.SubElement(element, case.tag, message=visible(case.message))
            found.text = visible(case.text) or None
            counts[case.tag] += 1
        counts["tests"] += 1
    for attribute, counted in (("tests", "tests"), ("failures", "failure"), ("skipped", "skipped")):
        suite.set(attribute, str(counts[counted]))


def _named_apart(root: ET.Element) -> None:
    """Number those cases that would be named alike: a path given twice, a recording in two files."""
    seen: Counter[tuple[str | None, str | None]] = Counter()
    for case in root.iter("testcase"):
        name = case.get("classname"), case.get("name")
        seen[name] += 1
        if seen[name] > 1:
            case.set("name", f"{name[1]} ({seen[name]})")


def _finding(finding: Finding) -> JUnitCase:
    name = f"{finding.property} in {finding.subject}" if finding.subject else finding.property
    if finding.verdict is Verdict.VIOLATED:
        places = "\n".join(map(_place, finding.witness))
        return JUnitCase(name, "failure", finding.explanation or "violated", text=places)
    if finding.verdict is Verdict.INCONCLUSIVE:
        counts = f"tested {finding.n_tested}, untestable {finding.n_untestable}"
        return JUnitCase(name, "skipped", "; ".join(filter(None, (counts, finding.explanation))))
    return JUnitCase(name)


def _place(event: Event) -> str:
    """Where an event stands, and what it is: ``run orders, recorder a, event 17: deliver m3``."""
    where = [f"run {event.run}"] * bool(event.run) + [f"recorder {event.rec}"] * bool(event.rec)
    what = " ".join(filter(None, [event.ev, event.ph, event.m]))
    return one_line(", ".join([*where, f"event {event.i}: {what}"]))


def _consistency(row: ProfileConsistency) -> JUnitCase:
    """One recording and profile. To be ruled out is no failure: no system fits every profile."""
    name = f"{row.subject}: {row.profile}"
    if row.verdict is Verdict.VIOLATED:
        return JUnitCase(name, "skipped", f"ruled out by {row.why}")
    if row.verdict is Verdict.INCONCLUSIVE:
        return JUnitCase(name, "skipped", f"not enough seen: {row.why}")
    return JUnitCase(name)


def _mutant(mutant: MutantRun) -> JUnitCase:
    if mutant.verdict is Verdict.OK:
        return JUnitCase(mutant.mutant, seconds=mutant.run.seconds)
    tag = "failure" if mutant.verdict is Verdict.VIOLATED else "skipped"
    message = f"must be killed by {mutant.expected}; killed by {mutant.killers}"
    return JUnitCase(mutant.mutant, tag, message, mutant.run.seconds)
