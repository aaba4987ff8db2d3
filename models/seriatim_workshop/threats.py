"""The last column of the table of spec/THREATS.md: what a run of the tests of each row came to.

`python -m seriatim_workshop.threats spec/THREATS.md` runs every test that the page names, the slow ones too (a
quarter of an hour), and writes the page; it ends with 1, and writes nothing, if one of them does not pass.
With words behind the page's name only the rows that have one of them are run, and the others keep what they have:
then there is no total, for it would be a sum over several runs.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from pathlib import Path

from seriatim_models.supervisor import supervised

TEST = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")
RAN = re.compile(r"^The last column is of (?:runs up to|one run, on) .*$", re.MULTILINE)


def outcomes(junit: Path) -> dict[str, Counter[str]]:
    """Return by test, with all its cases as one, how many passed, were skipped and failed.

    A test is named as the page names it: file, two colons, function.
    """
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for case in ET.parse(junit).iter("testcase"):  # our own pytest wrote it
        module, name = case.attrib["classname"], case.attrib["name"].partition("[")[0]
        tags = {part.tag for part in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if tags else "passed"
        found[f"{module.replace('.', '/')}.py::{name}"][outcome] += 1
    return found


def in_words(tests: list[str], found: dict[str, Counter[str]]) -> str:
    """Return the cell of a row that names these tests."""
    total = sum((found[test] for test in tests), Counter[str]())
    return ", ".join(f"{n} {outcome}" for outcome, n in sorted(total.items()))


def filled(page: str, found: dict[str, Counter[str]], day: str) -> str:
    """Return the page with the outcomes in the last cell of each row, and the day of the run above the table; with how
    many tests and cases there were, if that was a run of all of them.
    """
    lines = []
    for line in page.splitlines():
        tests = TEST.findall(line)
        if tests and found.keys() >= set(tests):
            line = f"{line.rpartition(' | ')[0]} | {in_words(tests, found)} |"
        lines.append(line)
    text = "\n".join(lines)
    named = set(TEST.findall(text))
    ran = f"The last column is of runs up to {day}."
    if found.keys() >= named:
        cases = sum(sum(found[test].values()) for test in named)
        ran = f"The last column is of one run, on {day}: {len(named)} tests with {cases} cases."
    return RAN.sub(ran, text) + "\n"


def main(path: Path, *words: str) -> int:
    """Run the tests of the page at `path`, of rows with one of the words, and fill it; returns pytest's exit code."""
    page = path.read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if not words or any(w in row for w in words)]
    tests = sorted(set(TEST.findall("\n".join(rows))))
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "junit.xml"
        asked = ["-m", "slow or not slow", "-n", "2", f"--junitxml={junit}", *tests]
        command = supervised([sys.executable, "-m", "pytest", *asked])
        code = subprocess.run(command, check=False).returncode
        if code == 0:
            day = datetime.datetime.now(datetime.UTC).date().isoformat()
            path.write_text(filled(page, outcomes(junit), day), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
