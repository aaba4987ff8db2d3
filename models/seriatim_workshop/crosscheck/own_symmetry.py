"""Generated programs of ordinary Python with identical threads: explored with symmetry, and all distinguished.

The lines are those of `own_code`; two or three threads run one function, and what they saw is returned without saying
who saw it. The search with symmetry must stand for as many traces as the other one finds, in at most as many
executions, and see the same outcomes and ends.
"""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

from seriatim_models.explorer.search.dpor import Dpor
from seriatim_workshop.crosscheck.own_code import (
    HEAD,
    SHARED,
    STATE,
    Agreement,
    Generated,
    LineMaker,
    result_of,
)


def generate(seed: int) -> Generated:
    """The program of this seed."""
    chance = random.Random(seed)
    maker = LineMaker(chance)
    threads = chance.choice((2, 2, 3))
    parts = [
        *SHARED,
        "    results = []",
        "    r = []",
        "    def work():",
        "        nonlocal v, lst, it, gen",
        "        global G",
        "        r = []",
        textwrap.indent(maker.block(1, 2 if threads == 3 else 3), " " * 8),
        "        results.append(shown(r))",
    ]
    if chance.random() < 0.3:  # another one, before them or behind
        parts += [
            "    def other():",
            "        nonlocal v, lst, it, gen",
            "        global G",
            "        r = []",
        ]
        parts += [textwrap.indent(maker.block(1, 1), " " * 8), "        results.append(shown(r))"]
    others = ["other"] * ("    def other():" in parts)
    targets = ["work"] * threads
    targets = [*others, *targets] if chance.random() < 0.5 else [*targets, *others]
    parts += [f"    t{k} = threading.Thread(target={target})" for k, target in enumerate(targets)]
    parts += [f"    t{k}.start()" for k in range(len(targets))]
    if chance.random() < 0.3:
        parts.append(textwrap.indent(maker.line(), " " * 4))
    order = list(range(len(targets)))
    if chance.random() < 0.3:
        order.reverse()
    parts += [f"    t{k}.join()" for k in order]
    parts.append(f"    return shown(r), sorted(results, key=repr), {STATE}")
    return Generated(seed, HEAD + "\n".join(parts) + "\n")


def compared(program: Generated, folder: Path, *, executions: int = 3000) -> Agreement:
    """Explore one program both ways."""
    name = f"generated_{program.seed}"
    path = folder / f"{name}.py"
    path.write_text(program.text)
    agreement = Agreement(program.seed)
    apart = result_of(path, name, max_executions=executions)
    agreement.traces = apart.traces or 0
    if not apart.exhausted:
        agreement.large = True
        return agreement
    alike = result_of(path, name, strategy=Dpor(symmetry=True), max_executions=executions)
    agreement.withheld = bool(apart.unseen)
    agreement.fewer = agreement.traces - alike.executions
    if alike.unreduced != apart.traces or agreement.fewer < 0:
        agreement.wrong.append(
            f"{apart.traces} traces, with symmetry {alike.executions} for {alike.unreduced}"
        )
    for what in ("outcomes", "ends"):
        ours, theirs = set(getattr(alike, what)), set(getattr(apart, what))
        if ours != theirs:
            agreement.wrong.append(
                f"{what}: only with symmetry {ours - theirs}, only without {theirs - ours}"
            )
    if alike.redundant or alike.blocked:
        agreement.wrong.append(f"{alike.redundant} redundant, {alike.blocked} blocked")
    return agreement
