"""What was found, for people and for programs: text tables, JSON, JUnit XML and one HTML page.

All four are drawn from one `Report` (`model.py`), so that they cannot disagree.
"""

from seriatim_models.report.model import (
    AuditRun,
    CounterexampleSummary,
    Edit,
    MutantRun,
    ProgramRun,
    Quarantined,
    Report,
    worst,
)

__all__ = [
    "AuditRun",
    "CounterexampleSummary",
    "Edit",
    "MutantRun",
    "ProgramRun",
    "Quarantined",
    "Report",
    "worst",
]
