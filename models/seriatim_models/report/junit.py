"""The report as JUnit XML, the form that most CI servers show as a table of tests.

One suite per program, mutant run and audit; one case per property.
An inconclusive finding is a skipped case: neither a pass nor a failure.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from seriatim_models.conformance.profile_consistency import Standing
from seriatim_models.properties.base import Finding, Verdict
from seriatim_models.report.model import MutantRun, Report


def junit(report: Report) -> bytes:
    """The report as an XML document."""
    root = ET.Element("testsuites", name="seriatim", time=f"{report.seconds:.3f}")
    for run in report.programs:
        name = f"{run.program} ({run.mutant})" if run.mutant else run.program
        _suite(root, name, run.seconds, run.findings)
    for audit in report.audits:
        _suite(root, ", ".join(audit.paths), audit.seconds, audit.findings)
        if audit.standings:
            _standings(root, audit.standings)
    if report.mutants:
        _mutants(root, report.mutants)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _suite(root: ET.Element, name: str, seconds: float, findings: list[Finding]) -> None:
    count = {v: str(sum(f.verdict is v for f in findings)) for v in Verdict}
    suite = ET.SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(len(findings)),
        failures=count[Verdict.VIOLATED],
        skipped=count[Verdict.INCONCLUSIVE],
        time=f"{seconds:.3f}",
    )
    for finding in findings:
        case = ET.SubElement(suite, "testcase", classname=name, name=finding.property)
        if finding.verdict is Verdict.VIOLATED:
            ET.SubElement(case, "failure", message=finding.explanation or "violated")
        elif finding.verdict is Verdict.INCONCLUSIVE:
            message = f"tested {finding.n_tested}, untestable {finding.n_untestable}"
            ET.SubElement(case, "skipped", message=message)


def _standings(root: ET.Element, standings: list[Standing]) -> None:
    """One case per recording and profile. To be ruled out is no failure: no system fits every profile."""
    out = sum(s.verdict is not Verdict.OK for s in standings)
    suite = ET.SubElement(
        root,
        "testsuite",
        name="profiles",
        tests=str(len(standings)),
        failures="0",
        skipped=str(out),
    )
    for standing in standings:
        name = f"{standing.subject}: {standing.profile}"
        case = ET.SubElement(suite, "testcase", classname="profiles", name=name)
        if standing.verdict is Verdict.VIOLATED:
            ET.SubElement(case, "skipped", message=f"ruled out by {standing.why}")
        elif standing.verdict is Verdict.INCONCLUSIVE:
            ET.SubElement(case, "skipped", message="no case of what it promises")


def _mutants(root: ET.Element, mutants: list[MutantRun]) -> None:
    survivors = [m for m in mutants if m.verdict is Verdict.VIOLATED]
    suite = ET.SubElement(
        root, "testsuite", name="mutants", tests=str(len(mutants)), failures=str(len(survivors))
    )
    for mutant in mutants:
        case = ET.SubElement(
            suite,
            "testcase",
            classname="mutants",
            name=mutant.mutant,
            time=f"{mutant.run.seconds:.3f}",
        )
        if mutant.verdict is not Verdict.OK:
            tag = "failure" if mutant.verdict is Verdict.VIOLATED else "skipped"
            message = f"must be killed by {mutant.expected}; killed by {mutant.killers}"
            ET.SubElement(case, tag, message=message)
