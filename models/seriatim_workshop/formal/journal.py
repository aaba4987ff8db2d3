"""What was followed already, kept in a file as it comes: a run that was killed goes on behind it."""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import seriatim
import seriatim_models
import seriatim_workshop.formal as formal
from seriatim_workshop.formal import SPEC
from seriatim_workshop.formal.followed import Followed

BASIS = ("history", "machines", "matrix", "programs", "recording")
"""The packages of `seriatim_models` that decide what is followed."""


def basis() -> str:
    """A digest of all that decides an outcome: the reference, the programs, the followers and the systems."""
    models = Path(inspect.getfile(seriatim_models)).parent
    folders = [Path(inspect.getfile(p)).parent for p in (seriatim, formal)]
    folders += [SPEC / "induction", *(models / name for name in BASIS)]
    digest = hashlib.sha256()
    for path in sorted(p for folder in folders for p in folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class FollowedJournal:
    """Outcomes by key, a line each. Those of another reference, program or system are forgotten.

    One process at a time writes it. A line that a kill has cut off is left out, and what it said is followed again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Followed] = {}
        head = {"basis": basis()}
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        kept = [json.dumps(head)]
        if lines[:1] == kept:
            for line in lines[1:]:
                try:
                    key, found = _read(line)
                except (ValueError, KeyError, TypeError):
                    continue
                self._known[key] = found
                kept.append(line)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text("".join(f"{line}\n" for line in kept), "utf-8")
        os.replace(fresh, path)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> Followed | None:
        """What came of it, if it was followed to its end."""
        return self._known.get(key)

    def keep(self, key: str, found: Followed) -> None:
        """Add an outcome. What must not be is not kept, so that it is seen again; a mutant's is not either."""
        if found.wrong or found.mutant:
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(key, found))


def add_option(parser: argparse.ArgumentParser) -> None:
    """Let a command be given a journal."""
    parser.add_argument(
        "--journal",
        metavar="FILE",
        type=lambda path: FollowedJournal(Path(path)),
        help="keep each outcome there, and take those that are kept: killed, it goes on where it was",
    )


def once(journal: FollowedJournal | None, key: str, follow: Callable[[], Followed]) -> Followed:
    """What is kept, if anything is; else what comes of following now, which is kept then."""
    kept = None if journal is None else journal.get(key)
    if kept is not None:
        return kept
    found = follow()
    if journal is not None:
        journal.keep(key, found)
    return found


def _line(key: str, found: Followed) -> str:
    given = {
        "key": key,
        "program": found.program,
        "executions": found.executions,
        "steps": found.steps,
        "counts": [[*key, n] for key, n in sorted(found.counts.items())],
        "actions": sorted(map(list, found.actions)),
        "notes": sorted(found.notes),
        "exhausted": found.exhausted,
        "seconds": found.seconds,
    }
    return json.dumps(given) + "\n"


def _read(line: str) -> tuple[str, Followed]:
    given = json.loads(line)
    counts = Counter({(what, system, kind): n for what, system, kind, n in given.pop("counts")})
    actions = {(system, action) for system, action in given.pop("actions")}
    key = str(given.pop("key"))
    return key, Followed(**{**given, "notes": set(given["notes"])}, counts=counts, actions=actions)
