"""Auditing recorded histories, in this process or on Spark.

`audit_paths` is the one entry. Importing this package imports neither Spark nor pandas.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from seriatim_models.pipeline.audit.findings import AuditReport as AuditReport
from seriatim_models.pipeline.audit.findings import RunStatistics as RunStatistics
from seriatim_models.pipeline.errors import PipelineError as PipelineError
from seriatim_models.properties.base import AnyProperty

ENGINES = ("local", "spark")


def audit_paths(
    paths: Iterable[str | Path],
    engine: str = "local",
    properties: Sequence[AnyProperty | str] | None = None,
    out: str | Path | None = None,
    master: str | None = None,
    on_events: Callable[[int], None] | None = None,
    alone: bool = False,
    jobs: int = 1,
) -> AuditReport:
    """Judge the histories in files and folders by properties, each run on its own.

    `properties` are property objects or ids; None means all black-box properties.
    For Spark: `out` keeps the chunk files there, for the next audit, and the tables (`tables`); otherwise they are
    temporary. `master` is Spark's (see `session`).
    `on_events` is called now and then by the local engine, with how many events it has read.
    `alone`: this process does nothing else, so pyarrow need not know pandas in it (`spared_imports`).
    `jobs`: on how many processors the local engine judges one recording: by threads if it is Parquet that its recorder
    completed, else by processes that share the properties of a long one. They are spawned: a script that asks for
    several has its own work behind ``if __name__ == "__main__"``.
    Both engines give the same verdicts, counts and witnesses.
    Raises `HistoryError` for input that cannot be read and `PipelineError` for an engine that cannot run here;
    both are ValueErrors of one sentence.
    """
    from seriatim_models.pipeline.audit.runs import plan

    if engine not in ENGINES:
        raise PipelineError(f"there is no engine {engine!r}; known are {' and '.join(ENGINES)}")
    chosen = chosen_of(properties)
    planned = plan(paths)
    if engine == "local":
        from seriatim_models.pipeline.audit.local import audit

        return audit(planned, chosen, on_events, alone, jobs)
    from seriatim_models.pipeline.session import require

    require()
    from seriatim_models.pipeline.audit.spark import audit as audit_on_spark

    return audit_on_spark(planned, chosen, out, master)


def chosen_of(properties: Sequence[AnyProperty | str] | None) -> tuple[AnyProperty, ...]:
    """The properties behind ids, or all black-box ones. Raises `PipelineError` for an unknown id."""
    from seriatim_models.properties import PROPERTIES
    from seriatim_models.properties.blackbox import BLACKBOX

    if properties is None:
        return BLACKBOX
    known = PROPERTIES | {p.id: p for p in BLACKBOX}
    chosen = []
    for prop in properties:
        if isinstance(prop, str):
            if prop not in known:
                near = difflib.get_close_matches(prop, known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise PipelineError(f"there is no property {prop!r}{hint}")
            prop = known[prop]
        chosen.append(prop)
    return tuple(chosen)
