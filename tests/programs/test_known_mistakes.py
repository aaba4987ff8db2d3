"""The table of known mistakes in spec/FINDINGS.md: each is kept as a mutant, or it is said why not."""

import re
from pathlib import Path

from seriatim_models.programs import MUTANTS

FINDINGS = Path(__file__).parents[2] / "spec" / "FINDINGS.md"
SYSTEMS = ("client", "log", "fair")


def rows() -> list[tuple[str, str, str]]:
    text = FINDINGS.read_text(encoding="utf-8")
    _, _, rest = text.partition("## Known mistakes of the client")
    table, _, _ = rest.partition("\n## ")
    found = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    return [row for row in found if row[0] != "where"]


def test_every_known_mistake_is_a_mutant_or_says_why_not() -> None:
    assert len(rows()) > 50
    for where, what, kept in rows():
        if kept.startswith("none: "):
            assert len(kept.split()) > 2, f"{where}, {what}: say why there is no mutant"
        else:
            id = kept.strip("`")
            assert id in MUTANTS, f"{where}, {what}: there is no mutant {id}"
            assert MUTANTS[id].reference in SYSTEMS


def test_every_published_mutant_is_in_the_table() -> None:
    kept = {row[2].strip("`") for row in rows()}
    published = {
        m.id for m in MUTANTS.values() if m.reference in SYSTEMS and m.id.startswith("published-")
    }
    assert published <= kept, f"add to spec/FINDINGS.md: {sorted(published - kept)}"
