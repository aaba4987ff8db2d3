"""What can be wrong with the machinery of an audit, as opposed to its input."""

from __future__ import annotations


class PipelineError(ValueError):
    """The audit cannot run here: one sentence that says what is missing. The command line turns it into exit code 2."""
