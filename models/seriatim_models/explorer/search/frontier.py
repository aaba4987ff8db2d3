"""Serialized searches: for a checkpoint, or for another process.

Threads and objects are written by name, not by number (numbers are each process's own):
a thread by its path from the set-up, an object by its maker and its number among that maker's objects.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from seriatim_models.explorer.errors import BadCheckpoint, ModelBug
from seriatim_models.explorer.model.execution import NOBODY, Space
from seriatim_models.explorer.search.dpor import Branch, DporSearch, PathNode
from seriatim_models.explorer.search.runner import Runner
from seriatim_models.explorer.trace.counterexample import Violation
from seriatim_models.files import Fault, decoded, read_whole, write_whole

VERSION = 4

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
"""Of executions, steps and the like: a search that makes more takes years."""
Mode = Annotated[int, msgspec.Meta(ge=0, le=2)]
"""READ, WRITE or ADD."""
Place = tuple[list[Count] | None, Count, Mode]
"""An access: the maker of the object, its number among that maker's objects, and how it is accessed. A number with an
attribute, which objects of ordinary Python have, goes to other processes only, and never into a file.
"""
Chain = Annotated[list[tuple[list[Count], Count, list[Place]]], msgspec.Meta(min_length=1)]
"""Steps that follow each other: a thread, its alternative, and the accesses of each."""


class BranchData(msgspec.Struct, array_like=True):
    """What `serialize_branch` gives."""

    chain: Chain
    branches: list[BranchData]


class SearchData(msgspec.Struct):
    """What `serialize_search` gives."""

    floor: Count
    path: list[BranchData]
    nodes: list[tuple[list[BranchData], list[BranchData]]]


# Any: what an observer sums up has a type of its own, and is checked by it
class CountsData(msgspec.Struct):
    """What `counts` gives."""

    complete: Count
    blocked: Count
    cut: Count
    redundant: Count
    violations: Count
    steps: Count
    depth: Count
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    ends: dict[str, Count]
    outcomes: list[tuple[str, Count]]
    seen: tuple[Count, bytes] | None
    observed: Any
    found: list[tuple[list[tuple[Count, Count]], list[tuple[str, str]]]]
    races: list[str] = []


SEMANTIC = (LookupError, ValueError, TypeError, AssertionError, RecursionError, ModelBug)
"""What plain data of the right types raise that are of no search of this program."""


def serialize_branch(branch: Branch, space: Space) -> list[Any]:
    """A branch with its subtree as plain data: a chain of steps, then the branches at its end."""
    chain: list[Any] = []
    while True:
        accesses = [[*_maker(space, index), mode] for index, mode in branch.footprint.accesses]
        chain.append([list(space.paths[branch.tid]), branch.alternative, accesses])
        if len(branch.children) != 1:
            return [chain, [serialize_branch(c, space) for c in branch.children]]
        branch = branch.children[0]


def serialize_sequences(sequences: list[list[Branch]], space: Space) -> list[Any]:
    """Many sequences with few different steps: a table of the steps, and the sequences as places in it."""
    places: dict[tuple[int, int, int], int] = {}
    table: list[Any] = []
    lines: list[list[int]] = []
    for sequence in sequences:
        line: list[int] = []
        for step in sequence:
            key = (step.tid, step.alternative, step.footprint.mask)
            place = places.get(key)
            if place is None:
                place = places[key] = len(table)
                table.append(
                    serialize_branch(Branch(step.tid, step.alternative, step.footprint), space)
                )
            line.append(place)
        lines.append(line)
    return [table, lines]


def deserialize_sequences(data: list[Any], space: Space) -> list[list[Branch]]:
    """The sequences again. Equal steps are one object: copy them before changing them."""
    table = [deserialize_branch(b, space) for b in data[0]]
    return [[table[k] for k in line] for line in data[1]]


def _maker(space: Space, index: int) -> list[Any]:
    maker, number = space.name_of_object(index)
    return [None if maker == NOBODY else list(space.paths[maker]), number]


def deserialize_branch(data: list[Any], space: Space) -> Branch:
    """A branch from plain data."""
    chain, children = data
    branches: list[Branch] = []
    for path, alternative, places in chain:
        accesses = tuple(
            (space.object(NOBODY if m is None else space.at(m), number)[0], mode)
            for m, number, mode in places
        )
        branch = Branch(space.at(path), alternative, space.footprint(accesses))
        if branches:
            branches[-1].children.append(branch)
        branches.append(branch)
    branches[-1].children = [deserialize_branch(c, space) for c in children]
    return branches[0]


def serialize_search(search: DporSearch) -> dict[str, Any]:
    """A search between two executions."""
    space = search.runner.space
    return {
        "floor": search.floor,
        "path": [serialize_branch(b, space) for b in search.path],
        "nodes": [
            [
                [serialize_branch(b, space) for b in node.sleep],
                [serialize_branch(b, space) for b in node.tree],
            ]
            for node in search.nodes[: len(search.path)]
        ],
    }


def deserialize_search(data: dict[str, Any], runner: Runner) -> DporSearch:
    """A search of `runner` that continues where the serialized one was."""
    search = DporSearch(runner)
    space = runner.space
    search.floor = data["floor"]
    search.path = [deserialize_branch(b, space) for b in data["path"]]
    search.nodes = [
        PathNode(
            [deserialize_branch(b, space) for b in sleep],
            [deserialize_branch(b, space) for b in tree],
        )
        for sleep, tree in data["nodes"]
    ] or [PathNode([], [])]
    return search


def counts(runner: Runner) -> dict[str, Any]:
    """What a runner has counted, as plain data."""
    seen = runner.seen
    return {
        "complete": runner.complete,
        "blocked": runner.blocked,
        "cut": runner.cut,
        "redundant": runner.redundant,
        "violations": runner.violations,
        "steps": runner.steps,
        "depth": runner.depth,
        "seconds": runner.seconds,
        "ends": dict(runner.ends),
        "races": list(runner.races),
        "outcomes": [[_plain(k), n] for k, n in runner.outcomes.items()],
        "seen": None
        if seen is None
        else [seen.one_in, base64.b64encode(b"".join(sorted(seen.kept))).decode()],
        "observed": None if runner.summing is None else runner.summing.counts(),
        "found": [
            [[list(s) for s in schedule], [[v.kind, str(v.what)] for v in wrong]]
            for schedule, wrong in runner.found
        ],
    }


def add_counts(runner: Runner, data: dict[str, Any]) -> None:
    """Add what another runner of the same program has counted."""
    for name in ("complete", "blocked", "cut", "violations", "steps"):
        setattr(runner, name, getattr(runner, name) + data[name])
    runner.depth = max(runner.depth, data["depth"])
    runner.redundant += data["redundant"]
    runner.ends.update(data["ends"])
    runner.races.update(dict.fromkeys(data.get("races", ())))
    for text, n in data["outcomes"]:
        runner.outcomes[_value(text)] += n
    if runner.seen is not None and data["seen"] is not None:
        one_in, names = data["seen"]
        raw = base64.b64decode(names)
        again = runner.seen.join((raw[k : k + 16] for k in range(0, len(raw), 16)), one_in)
        runner.redundant += again * runner.seen.one_in
    if runner.summing is not None and data["observed"] is not None:
        runner.summing.add(data["observed"])
    for schedule, wrong in data["found"]:
        if not runner.found:
            runner.found.append(
                ([(n, w) for n, w in schedule], [Violation(kind, what) for kind, what in wrong])
            )


def _plain(value: object) -> str:
    return repr(value)


def _value(text: str) -> object:
    try:
        value = ast.literal_eval(text)
        hash(value)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text
    return value


# Any: plain data
def plain(body: bytes, type: Any, fault: str, error: Fault) -> dict[str, Any]:
    """Plain data of a search, of which all has the type that it should. Raises `error`, which begins with `fault`."""
    decoded(body, type, fault, error)
    found: dict[str, Any] = json.loads(body)
    return found


class _CheckpointData(msgspec.Struct):
    """What `save` writes behind the checksum, of this version."""

    checkpoint: int
    program: str
    search: SearchData
    counts: CountsData


class _CheckpointHead(msgspec.Struct):
    """What a checkpoint of any version says of itself."""

    checkpoint: int
    program: str = ""


def save(path: Path, search: DporSearch, program: str) -> None:
    """Write a checkpoint, whole or not at all."""
    data = {
        "checkpoint": VERSION,
        "program": program,
        "search": serialize_search(search),
        "counts": counts(search.runner),
    }
    body = json.dumps(data).encode()
    write_whole(path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def load(path: Path, runner: Runner, program: str) -> DporSearch:
    """Go on from a checkpoint of the same program. Raises `BadCheckpoint`."""
    checksum, _, body = read_whole(path, error=BadCheckpoint).partition(b"\n")
    # A digit that flips would leave out schedules, and nobody would know.
    if checksum.decode("latin-1") != hashlib.sha256(body).hexdigest():
        raise BadCheckpoint(
            f"{path} is not a checkpoint of an exploration of this version, or is damaged"
        )
    alien = f"{path} is no checkpoint of an exploration"
    head = decoded(body, _CheckpointHead, alien, BadCheckpoint)
    version, of = head.checkpoint, head.program
    if version != VERSION:
        raise BadCheckpoint(
            f"{path} is a checkpoint of version {version}, this is {VERSION}: remove it"
        )
    if of != program:
        raise BadCheckpoint(
            f"{path} is the checkpoint of another program or setting ({of}, this is {program}): "
            "remove it, or give this exploration a file of its own"
        )
    data = plain(body, _CheckpointData, alien, BadCheckpoint)
    try:
        add_counts(runner, data["counts"])
        runner.before = data["counts"]["seconds"]
        return deserialize_search(data["search"], runner)
    except SEMANTIC as error:
        raise BadCheckpoint(f"{alien}: it is of no search of this program ({error!r})") from error
