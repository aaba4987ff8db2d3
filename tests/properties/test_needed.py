"""Faults that are reported as soon as a recording shows them, and stay open where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from seriatim_workshop.right.needed import NEEDED, NeededRecord, reported

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("record", NEEDED, ids=lambda record: record.made.__name__)
def test_a_fault_is_reported_when_what_shows_it_is_recorded(record: NeededRecord) -> None:
    assert not reported(record, shown=False)
    assert reported(record, shown=True)


def test_the_page_says_what_each_takes() -> None:
    page = (ROOT / "spec" / "RECALL.md").read_text(encoding="utf-8")
    assert all(f"| {record.needed} | reported |" in page for record in NEEDED)
