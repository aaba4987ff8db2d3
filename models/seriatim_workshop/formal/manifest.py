"""`spec/manifest.json`: each run of Spin, what it must find, and how many states that takes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from seriatim_workshop.formal import SPEC

MANIFEST = SPEC / "manifest.json"
SCHEMA = "seriatim-manifest/1"
KINDS = {
    "holds": "the model satisfies the property",
    "fails": "a broken variant, which must be refuted",
    "reached": "a reachability check: the case that the promise is about does happen, so that it is not vacuous",
}


@dataclass(frozen=True)
class SpinRun:
    """One claim about one model."""

    name: str
    file: str
    flags: list[str]
    """Preprocessor flags; none is the model as it is right."""
    claim: str | None
    """The ltl formula; None asks for assertions and for threads that are stuck."""
    property: str
    kind: str
    """One of `KINDS`."""
    says: str
    fair: bool
    """Liveness, under weak fairness."""
    states: int
    """Stored states."""
    depth: int
    """The longest shortest path (safety, breadth first), or the depth of the search (liveness)."""
    seconds: float
    """Roughly, on a slow machine; not compared."""
    any_scheduler: bool = False
    """Liveness, and nothing is assumed of the scheduler: no execution goes on for ever without it."""

    def differs(self, other: SpinRun) -> str:
        """In what `other` is not what is pinned here; '' if in nothing."""
        return ", ".join(
            f"{what} {getattr(other, what)}, pinned {getattr(self, what)}"
            for what in ("states", "depth")
            if getattr(self, what) != getattr(other, what)
        )


@dataclass(frozen=True)
class ContractRun:
    """What CrossHair said of one function with a contract."""

    function: str
    contracts: str
    """By the names that deal gives them, with + between them."""
    verdict: str
    """proved (confirmed over all paths), open or refuted."""
    says: str
    """CrossHair's words; of an open one the reason why it is not proved."""


@dataclass(frozen=True)
class SpinManifest:
    """All runs, the Spin that they were measured with, and what CrossHair said of the contracts."""

    spin: str
    runs: list[SpinRun]
    contracts: list[ContractRun] = field(default_factory=list)


def read(path: Path = MANIFEST) -> SpinManifest:
    """What is pinned. Raises ValueError, with file and field, if it is not what it should be."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"{path}: the field schema is not {SCHEMA!r}")
    try:
        runs = [SpinRun(**one) for one in data["runs"]]
        contracts = [ContractRun(**one) for one in data.get("contracts", ())]
        found = SpinManifest(str(data["spin"]), runs, contracts)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
    for run in found.runs:
        if run.kind not in KINDS:
            raise ValueError(f"{path}: {run.name}: kind {run.kind!r} is none of {', '.join(KINDS)}")
    return found


def write(found: SpinManifest, path: Path = MANIFEST) -> None:
    """Write the runs, their numbers as measured."""
    rounded = [asdict(replace(run, seconds=round(run.seconds, 1))) for run in found.runs]
    contracts = [asdict(one) for one in found.contracts]
    whole = {"schema": SCHEMA, "spin": found.spin, "runs": rounded, "contracts": contracts}
    text = json.dumps(whole, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
