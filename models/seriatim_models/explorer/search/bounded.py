"""All schedules with few preemptions (Musuvathi & Qadeer, PLDI 2007).

A *preemption* takes the turn from a thread that could have gone on. Most mistakes need one or two.
The schedules with at most k of them are enumerated depth first: all traces that can be had with so few preemptions
are seen, and some more than once; `redundant` counts these.

**Why nothing is reduced.** Reduction relies on "what begins so has been seen, in another order".
Under a bound the other order may have needed one preemption more, and was then *not* seen:
sleep sets and wakeup trees would lose traces.
Bounded partial-order reduction (Coons, Musuvathi & McKinley, OOPSLA 2013) mends that with conservative branches
wherever a thread's turn begins, and gives up what makes `dpor` easy to judge, one execution for each trace.
Enumeration is simple enough to be believed, and with few preemptions there are few schedules:
of n threads with k steps each and c preemptions at most C(nk, c) (n + c)!, which is a polynomial in k.
For every trace take `Dpor` without a bound.

A thread that went on for `PATIENCE` steps may be interrupted for nothing: else a spin loop would have no end.
"""

from __future__ import annotations

from collections.abc import Callable

from seriatim_models.explorer.model.execution import PATIENCE, Execution
from seriatim_models.explorer.model.operations import Thread
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace.foata import FoataLevels
from seriatim_models.explorer.trace.termination import classify

Ended = Callable[[Execution, str, FoataLevels | None], bool]


def schedules(
    runner: Runner, preemptions: int, ended: Ended, over: Callable[[], bool], levels: bool
) -> bool:
    """Run every schedule within the bound; `ended` returns whether to stop. True if none was left out."""
    path: list[list[tuple[int, int]]] = []
    while not over():
        ex = runner.fresh()
        try:
            forms = FoataLevels(ex) if levels else None
            end = _one(ex, runner, preemptions, path, forms)
            stop = ended(ex, end, forms)
        except BaseException:
            ex.close()
            raise
        if stop:
            return False
        while path:
            path[-1].pop()
            if path[-1]:
                break
            path.pop()
        if not path:
            return True
    return False


def _one(
    ex: Execution,
    runner: Runner,
    preemptions: int,
    path: list[list[tuple[int, int]]],
    forms: FoataLevels | None,
) -> str:
    depth = spent = turns = 0
    last: Thread | None = None
    while True:
        enabled = ex.enabled()
        if not enabled:
            return classify(ex)
        early = runner.limits.stop(ex)
        if early:
            return early
        going = last if last is not None and last in enabled else None
        if depth == len(path):
            choices = enabled if going is None or spent < preemptions else [going]
            if going is not None and turns >= PATIENCE and len(enabled) > 1:
                choices = (
                    enabled  # it spins: another thread may go, which does not count as a preemption
                )
            first = [going] if going in choices and turns < PATIENCE else []
            order = [*[t for t in choices if t not in first], *first]  # the last is taken first
            path.append(
                [(t.number, w) for t in order if t is not None for w in reversed(_alternatives(t))]
            )
        number, alternative = path[depth][-1]
        thread = ex.order[number]
        if going is not None and thread is not going and not thread.virtual and turns < PATIENCE:
            spent += 1
        turns = turns + 1 if thread is last else 1
        if forms is not None:
            forms.before(thread, alternative)
        ex.step(thread, alternative)
        if not thread.virtual:
            last = thread
        depth += 1


def _alternatives(thread: Thread) -> range:
    return range(thread.op.alternatives() if thread.op is not None else 0)


def search(runner: Runner) -> None:
    """The bounded search as a strategy: everything with at most `runner.limits.preemptions`."""
    bound = runner.limits.preemptions
    assert bound is not None

    def ended(ex: Execution, end: str, forms: FoataLevels | None) -> bool:
        if forms is not None and runner.forms is not None and end not in ("cut", "failed"):
            runner.forms.add(forms.form())
        return runner.ended(ex, end, forms.digest() if forms is not None else None)

    done = schedules(runner, bound, ended, runner.over, runner.seen is not None)
    runner.exhausted = done and runner.cut == 0
    if done and runner.cut:
        runner.spent = f"max_steps={runner.limits.max_steps}"
