"""Judges chapter 11: the audit says which property is broken, and by which message."""

import re
import tempfile
from pathlib import Path
from types import ModuleType

from seriatim_models.history import read_history
from seriatim_models.history.complete import complete
from seriatim_models.properties import Verdict
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.whitebox.judging import judge


def broken() -> dict[str, set[str]]:
    """By the chapter's own history."""
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    found = re.search(r'HISTORY = """\n(.*?)"""', text, re.DOTALL)
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "evening.jsonl"
        file.write_text(found[1].replace("\\\n", ""), encoding="utf-8")
        events = list(complete(read_history(file).events))
    return {
        f.property: {e.m for e in f.witness}
        for f in judge(events, BLACKBOX)
        if f.verdict is Verdict.VIOLATED
    }


def check(mine: ModuleType) -> None:
    verdicts = broken()
    known = [p.id for p in BLACKBOX]
    assert mine.PROPERTY in known, (
        f"there is no property {mine.PROPERTY!r}; `seriatim list properties` lists them"
    )
    assert mine.PROPERTY in verdicts, (
        f"PROPERTY: {mine.PROPERTY} holds here, or cannot be judged; "
        f"`seriatim explain {mine.PROPERTY}` says what it asks for"
    )
    assert mine.MESSAGE in verdicts[mine.PROPERTY], (
        f"MESSAGE: {mine.PROPERTY} is violated, but not by {mine.MESSAGE!r}"
    )
