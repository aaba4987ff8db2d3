"""The report as JUnit XML, the form that most CI servers show as a table of tests.

One suite per program, mutant run and audit; one case per property.
An inconclusive finding is a skipped case: neither a pass nor a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree as ET

from seriatim_models.conformance.profile_consistency import ProfileConsistency
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report.model import MutantRun, Report
from seriatim_models.report.visible import one_line, visible


class JUnitCase(NamedTuple):
    """One test case; `tag` is ``failure`` or ``skipped``, or empty if it passed."""

    name: str
    tag: str = ""
    message: str = ""
    seconds: float | None = None


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
            ET.SubElement(element, case.tag, message=visible(case.message))
            counts[case.tag] += 1
        counts["tests"] += 1
    for attribute, counted in (("tests", "tests"), ("failures", "failure"), ("skipped", "skipped")):
        suite.set(attribute, str(counts[counted]))


def _finding(finding: Finding) -> JUnitCase:
    if finding.verdict is Verdict.VIOLATED:
        return JUnitCase(finding.property, "failure", finding.explanation or "violated")
    if finding.verdict is Verdict.INCONCLUSIVE:
        counts = f"tested {finding.n_tested}, untestable {finding.n_untestable}"
        return JUnitCase(finding.property, "skipped", counts)
    return JUnitCase(finding.property)


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
