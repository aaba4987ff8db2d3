"""Reachability: from the start each action can be taken, each witness seen, and each mistake does harm.

An invariant also holds of a system in which nothing ever happens. So for each action and each witness there is a
*path*: a few members, and steps from an initial state, each of which the guards allow, to where the action has been
taken, or the witness is true. For each broken variant the path ends in a state, or a step, that violates what is
promised: a claim of safety, not only an invariant that is there to make the induction go through.

The paths stand in `spec/induction/paths.json`. They are certificates: checked by taking every step anew. Whoever
changes a system lets them be found again by a random search with a fixed seed:

python -m seriatim_workshop.formal.reach            # check all; 1 if anything is not reached
python -m seriatim_workshop.formal.reach --find     # find anew what is not reached any more
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import z3

from seriatim_workshop.formal import theory
from seriatim_workshop.formal.concrete import Concrete, NotThat, choices
from seriatim_workshop.formal.source import Value, values
from seriatim_workshop.formal.theory import Claim, TransitionSystem

PATHS = theory.FOLDER / "paths.json"
STEPS_MAX = 40
"""Of one random walk."""
NUMBERS = range(5)
"""From which numbers a parameter, and a rigid number, is chosen."""

SIZES = {
    "nodes": {"Node": 5, "List": 1, "Thread": 2, "Walk": 1},
    "entries": {"Entry": 2, "Consumer": 2, "Thread": 2, "Mark": 7, "Group": 1},
    "lists": {"Consumer": 2, "Thread": 2},
    "consumers": {"Consumer": 2, "Thread": 2, "Name": 2},
    "wakeups": {"Message": 2, "Consumer": 2, "Thread": 3, "Browser": 1},
    "handover": {"Target": 2, "Session": 2, "Connection": 1, "Thread": 2},
}
"""How many members there are on a path. Marks and nodes are used up: each step takes a fresh one."""


@dataclass(frozen=True)
class Path:
    """A finite instance, and steps from its initial state."""

    members: dict[str, list[str]]
    start: dict[str, list[list[Any]]]
    """Functions that differ from false, zero or the first: arguments and value."""
    steps: list[tuple[str, dict[str, Value]]]

    def data(self) -> dict[str, Any]:
        """As it is written."""
        return {"members": self.members, "start": self.start, "steps": self.steps}


@dataclass(frozen=True)
class Goal:
    """What is to be reached in a system."""

    system: TransitionSystem
    kind: str
    """action, witness or broken"""
    name: str

    @property
    def id(self) -> str:
        """System, kind and name."""
        return f"{self.system.name}/{self.kind}/{self.name}"

    def world(self) -> TransitionSystem:
        """The system in which it is looked for: with the broken action in the place of the right one, if it is one."""
        if self.kind != "broken":
            return self.system
        variant = self.system.broken_variants[self.name]
        actions = {**self.system.actions, variant.replaces: variant.action}
        return replace(self.system, actions=actions)

    def reached(self, before: Concrete | None, state: Concrete, action: str) -> bool:
        """Whether the last step led there."""
        if self.kind == "action":
            return action == self.name
        if self.kind == "witness":
            return state.witnesses(self.system.witnesses[self.name])
        return bool(violated(self.system, before, state))


def violated(system: TransitionSystem, before: Concrete | None, state: Concrete) -> list[str]:
    """The promises that a state, or the step to it, breaks."""
    found = [name for name, claim in system.safety.items() if not state.holds(claim)]
    if before is not None:
        found += [name for name, claim in system.steps.items() if not state.holds(claim, before)]
    return found


def goals(system: TransitionSystem) -> Iterator[Goal]:
    """Everything that must be reached; not the variants that say that they only break the induction."""
    yield from (Goal(system, "action", name) for name in system.actions)
    yield from (Goal(system, "witness", name) for name in system.witnesses)
    for name, variant in system.broken_variants.items():
        if not variant.only_induction:
            yield Goal(system, "broken", name)


TAKING = ["register", "count", "append", "look", "go_on", "advance", "find", "acquire", "pass_by"]
WALKING = [
    "make_available",
    "announce",
    "skip_absent",
    "skip_unwilling",
    "leave_it_to",
    "see",
    "skip_useless",
    "end_walk",
]
LEAVING = [
    "make_available", "announce", "see", "skip_useless", "skip_absent", "end_walk", "raise_the_flag",
    "find_interest", "notify", "wake", "draw", "begin_pull", "show_rest", "begin_look", "find_it_left",
    "find_it_busy", "run_dry", "pass_on", "remove",
]  # fmt: skip
HINTS: dict[str, list[str]] = {
    "entries/witness/a_walk_past_a_held_entry": TAKING,
    "entries/broken/acquire_by_set": [a for a in TAKING if a != "pass_by"],
    "entries/broken/insert_as_published": [a if a != "append" else "insert" for a in TAKING],
    "entries/broken/advance_by_value": [*TAKING, "release", "rewind"],
    "entries/broken/set_free_in_silence": [*TAKING, "join", "set_free", "release"],
    "entries/broken/join_the_owned": [*TAKING, "join"],
    "consumers/witness/one_after_the_other": [
        "begin_to_admit", "be_the_only_one", "join", "end_admission", "begin_to_send", "close", "end_sending",
        "be_no_longer_the_only_one", "leave",
    ],
    "consumers/broken/end_pull_broke": ["begin_to_admit", "join", "want", "pay", "obtain", "end_pull"],
    "wakeups/broken/look_then_rest": [
        *WALKING, "find_interest", "notify", "wake", "draw", "begin_pull", "show_rest", "begin_look",
        "scan", "find_nothing", "run_dry", "pass_on",
    ],
    "wakeups/broken/keep_it_to_oneself": [
        "make_available", "announce", "see", "skip_useless", "end_walk", "find_interest", "notify",
        "wake", "draw", "begin_pull", "show_rest", "begin_look", "scan", "find_nothing", "run_dry",
        "make_unfit",
    ],
    "wakeups/broken/lose_interest_silently": [
        "make_available", "announce", "see", "skip_useless", "end_walk", "find_interest", "notify",
        "wake", "draw", "lower_the_flag", "lose_interest", "begin_pull", "begin_look", "decline",
    ],
    "wakeups/broken/find_interest_blindly": [*WALKING, "find_interest"],
    "wakeups/broken/leave_it_to_nobody": LEAVING,
    "wakeups/broken/leave_it_and_wake_nobody": LEAVING,
    "wakeups/broken/walk_by_and_wake_nobody": [*WALKING, "raise_the_flag", "remove", "find_interest"],
}  # fmt: skip
"""Goal -> the actions among which its path is looked for: a random walk over all of them is long in finding it."""


# ---- checking


def check(goal: Goal, path: Path) -> str:
    """Why the path does not lead to the goal; '' if it does."""
    system = goal.world()
    state = Concrete(system, {**{sort.name(): [] for sort in system.sorts}, **path.members})
    for name, entries in path.start.items():
        for *arguments, value in entries:
            state.put(name, *arguments, value)
    if not state.holds(Claim("start", "", {}, system.start, "")):
        return "it does not begin in an initial state"
    reached = False
    for action, parameters in path.steps:
        before = state.copy() if goal.kind == "broken" else None
        try:
            state.take(action, **parameters)
        except (NotThat, KeyError, TypeError) as why:  # TypeError: it has other parameters by now
            return f"after {path.steps.index((action, parameters))} steps: {why}"
        reached = goal.reached(before, state, action)
    return "" if reached else "its steps are possible, and lead somewhere else"


def stored() -> dict[str, Path]:
    """The paths that are kept, by goal."""
    if not PATHS.exists():
        return {}
    data = json.loads(PATHS.read_text("utf-8"))
    return {
        name: Path(one["members"], one["start"], [(a, p) for a, p in one["steps"]])
        for name, one in data.items()
    }


# ---- searching


def instance(system: TransitionSystem, rng: random.Random) -> Concrete:
    """A finite instance in an initial state, its rigid functions drawn."""
    sizes = SIZES.get(system.name, {})
    members = {}
    for sort in system.sorts:
        name = sort.name()
        most = sizes.get(name, 2)
        count = rng.randint(max(1, most - 1), most)
        members[name] = [f"{name[0].lower()}{i + 1}" for i in range(count)]
    state = Concrete(system, members)
    for name, function in system.functions.items():
        if name in system.rigid:
            domain = [function.domain(i) for i in range(function.arity())]
            for arguments in choices(state, domain, NUMBERS):
                state.put(name, *arguments, rng.choice(_values(state, function.range())))
    for name in ("wants", "acquires"):  # most interesting where everybody wants everything
        if name in system.rigid and rng.random() < 0.5:
            for key in state.tables[name]:
                state.tables[name][key] = True
    begin = BEGIN.get(system.name)
    if begin is not None:
        begin(state)
    return state


def _values(state: Concrete, sort: Any) -> list[Value]:
    if sort == z3.BoolSort():
        return [False, True]
    if sort == z3.IntSort():
        return [*NUMBERS][:3]
    return [*state.members[sort.name()]] if sort.name() in state.members else [*values(sort)]


def _begin_nodes(state: Concrete) -> None:
    head, (only,) = state.members["Node"][0], state.members["List"]
    for n in state.members["Node"]:
        state.put("of", n, only)
        state.put("is_head", n, n == head)
        state.put("linked", n, n == head)
        state.put("last", n, True)
    state.put("tail", only, head)


def _begin_consumers(state: Concrete) -> None:
    for c in state.members["Consumer"]:
        for name in ("credit", "granted"):
            state.put(name, c, state.get("allowance", c))
        able = not state.get("limited", c) or state.get("allowance", c) != 0
        state.put("said", c, able)
        state.put("wish", c, "WORK" if able and state.get("pushed") else "NOTHING")


def _begin_wakeups(state: Concrete) -> None:
    for (c, m), wants in state.tables["wants"].items():
        state.put("fit", c, m, wants)
    consumers = state.members["Consumer"]  # an order: at most each is higher than those before it
    for c, d in product(consumers, consumers):
        above = consumers.index(c) > consumers.index(d)
        state.put("higher", c, d, above and state.get("higher", c, consumers[0]))


BEGIN: dict[str, Callable[[Concrete], None]] = {
    "nodes": _begin_nodes,
    "consumers": _begin_consumers,
    "wakeups": _begin_wakeups,
}
"""What an initial state needs besides rigid functions."""


def find(wanted: list[Goal], seconds: float, seed: int = 1) -> dict[str, Path]:
    """Paths to the goals, which are all looked for in one system: the shortest that random walks found, cut down."""
    found: dict[str, Path] = {}
    rng = random.Random(seed)
    ends = time.monotonic() + seconds
    system = wanted[0].world()
    while time.monotonic() < ends and len(found) < len(wanted):
        state = instance(system, rng)
        if not state.holds(Claim("start", "", {}, system.start, "")):
            raise ValueError(f"{system.name}: what `instance` makes is no initial state")
        start = _different(state)
        steps: list[tuple[str, dict[str, Value]]] = []
        names = HINTS.get(wanted[0].id) if len(wanted) == 1 else None
        bias = {name: rng.choice((0.1, 0.3, 1.0)) for name in names or system.actions}
        while len(steps) < STEPS_MAX:
            step = _step(state, rng, bias)
            if step is None:
                break
            before = state.copy()
            state.take(step[0], **step[1])
            steps.append(step)
            for goal in wanted:
                if goal.id not in found and goal.reached(before, state, step[0]):
                    path = Path(state.members, start, [*steps])
                    found[goal.id] = cut(goal, path)
    return found


def _step(
    state: Concrete, rng: random.Random, bias: dict[str, float]
) -> tuple[str, dict[str, Value]] | None:
    """A step that is possible, its action drawn by its bias."""
    names = sorted(bias, key=lambda name: rng.random() ** (1 / (bias[name] + 0.01)), reverse=True)
    for name in names:
        parameters = state.system.actions[name].parameters
        every = [*choices(state, parameters.values(), NUMBERS)]
        rng.shuffle(every)
        for chosen in every:
            given = dict(zip(parameters, chosen, strict=True))
            if state.allows(name, **given):
                return name, given
    return None


def _different(state: Concrete) -> dict[str, list[list[Any]]]:
    plain = Concrete(state.system, state.members)
    found = {
        name: [[*key, value] for key, value in table.items() if value != plain.get(name, *key)]
        for name, table in state.tables.items()
    }
    return {name: entries for name, entries in found.items() if entries}


def cut(goal: Goal, path: Path) -> Path:
    """The same path without the steps that it does not need."""
    at = len(path.steps) - 2
    while at >= 0:
        shorter = replace(path, steps=path.steps[:at] + path.steps[at + 1 :])
        if not check(goal, shorter):
            path = shorter
        at -= 1
    return path


def look_for(goal: Goal, path: Path | None, seconds: float) -> tuple[str, str]:
    """Whether the goal is reached, and how: by the path that is kept, or by one that is found now."""
    why = "no path is kept" if path is None else check(goal, path)
    if path is not None and not why:
        return "reached", shown(path)
    found = find([goal], seconds).get(goal.id)
    if found is None:
        return "not reached", why
    return "reached", shown(found)


def shown(path: Path) -> str:
    """The steps of a path, one a line."""
    return "\n".join(
        f"  {action}({', '.join(f'{n} = {v}' for n, v in given.items())})"
        for action, given in path.steps
    )


def main(args: list[str] | None = None) -> int:
    """Check all paths, or find them; the exit code is 1 if something is not reached."""
    parser = argparse.ArgumentParser(
        prog="python -m seriatim_workshop.formal.reach",
        description="Check the paths that show that the systems of spec/induction do something.",
    )
    parser.add_argument("names", nargs="*", metavar="SYSTEM", help="which systems; all, if none")
    parser.add_argument("--find", action="store_true", help="find what is not reached any more")
    parser.add_argument("--seconds", type=float, default=60, help="for one system, or one variant")
    asked = parser.parse_args(args)
    kept = stored()
    current: dict[str, Path] = {}
    missing = []
    for name in theory.SYSTEMS:
        wanted = [*goals(theory.load(name))]
        bad = [g for g in wanted if g.id not in kept or check(g, kept[g.id])]
        current |= {g.id: kept[g.id] for g in wanted if g not in bad}
        if asked.find and bad and (not asked.names or name in asked.names):
            common = [g for g in bad if g.kind != "broken"]
            found = find(common, asked.seconds) if common else {}
            for goal in bad:
                if goal.id not in found:
                    found |= find([goal], asked.seconds)
            current |= found
        missing += [g.id for g in wanted if g.id not in current]
    if asked.find:
        lines = [f" {json.dumps(n)}: {json.dumps(current[n].data())}" for n in sorted(current)]
        PATHS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    longest = max((len(p.steps) for p in current.values()), default=0)
    print(f"{len(current)} goals reached, by at most {longest} steps; {len(missing)} not reached")
    for name in missing:
        print(f"! {name}")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
