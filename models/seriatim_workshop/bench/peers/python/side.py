"""One program under one peer: `python side.py frontrun|interleave-test PROGRAM SECONDS`, in the peer's environment.

Prints one line of JSON. Nothing of this project can be imported there but the files that lie beside. In the environment
of this project, `python side.py seriatim PROGRAM SECONDS` explores the same plain Python.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from plain import MISTAKES, SPEED, PlainProgram  # type: ignore[import-not-found]  # run as a script

Outcome = tuple[int, bool, str]
"""Executions, whether all was seen, and what was found."""


def frontrun(program: PlainProgram, seconds: float, mistaken: bool) -> Outcome:
    """Its optimal search (the default strategy), with no bound on preemptions.

    With its real clock an execution in which somebody waits on a condition may hang until a time-out;
    its virtual clock is exact there, and slower, so the other programs run without it.
    """
    import frontrun as peer  # type: ignore[import-not-found]  # only in its own environment

    begun = time.perf_counter()
    result = peer.explore(
        setup=program.setup,
        workers=program.workers,
        invariant=program.holds,
        detect_io=False,
        stop_on_first=mistaken,
        reproduce_on_failure=0,
        total_timeout=seconds,
        preemption_bound=None,
        clock="virtual" if program.waits else "real",
    )
    in_time = time.perf_counter() - begun < seconds
    verdict = {True: "ok", False: "violated", None: "unfinished"}[result.property_holds]
    if verdict == "ok" and not in_time:
        verdict = "unfinished"
    return result.num_explored, verdict == "ok", verdict


def interleave(program: PlainProgram, seconds: float, mistaken: bool) -> Outcome:
    """Its exhaustive search: between lines and without a bound; for a mistake, as it is by default."""
    import interleave_test as peer  # type: ignore[import-not-found]  # only in its own environment

    deadline = time.perf_counter() + seconds

    class Timed(peer.DFSStrategy):  # type: ignore[misc]  # its types are not here
        def more(self) -> bool:
            return bool(super().more()) and time.perf_counter() < deadline

    def model() -> None:
        state = program.setup()
        for task in [peer.spawn(worker, state) for worker in program.workers]:
            task.join()
        assert program.holds(state)

    result = peer.explore(
        model,
        iterations=10**9,
        strategy=Timed(2 if mistaken else 10**9),
        granularity="opcode" if mistaken else "line",
        exclude=[__file__],  # no switch between the lines above
        raise_on_failure=False,
    )
    if result.failure is not None:
        return result.schedules_run, True, f"violated: {result.failure.kind}"
    return result.schedules_run, result.exhausted, "ok" if result.exhausted else "unfinished"


def seriatim(program: PlainProgram, seconds: float, mistaken: bool) -> Outcome:
    """Ours, of plain Python: every schedule."""
    import as_test  # type: ignore[import-not-found]  # lies beside

    from seriatim_models.explorer.python import check

    known = MISTAKES | SPEED
    name = next(name for name in known if known[name] is program)
    result = check(as_test.run, seconds=seconds, given={"program": name})
    verdict = "unfinished" if result.verdict == "inconclusive" else result.verdict
    return result.executions, result.exhausted, verdict


def main() -> None:
    """Explore one program by one peer and print a line of JSON."""
    warnings.simplefilter("ignore")
    name, program, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    explore = {"frontrun": frontrun, "interleave-test": interleave, "seriatim": seriatim}[name]
    mistaken = program in MISTAKES
    explore(SPEED["racy counter, 2 threads"], seconds, False)  # the first one warms up
    executions = 0
    times: list[float] = []
    count, ended, verdict = 0, False, ""
    begun = time.perf_counter()
    while not times or time.perf_counter() - begun < seconds / 2:
        start = time.perf_counter()
        count, ended, verdict = explore((MISTAKES | SPEED)[program], seconds, mistaken)
        times.append(time.perf_counter() - start)
        executions += count
        if mistaken:
            break
    result: dict[str, Any] = {
        "executions": count,
        "speed": executions / sum(times),
        "seconds": min(times) if ended or verdict.startswith("violated") else None,
        "verdict": verdict,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
