"""Test vectors: scripts with the outcomes that are right, for anybody to run; `spec/vectors/README.md` is their format.

The reference fills them. What other systems were seen to do with the same script stands beside it, under their name
(`spec/vectors/observed/NAME.json`): where they differ, a consumer may hold an implementation to one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from seriatim_models.conformance.local import Local
from seriatim_models.conformance.protocol import Answer, Fault, Push, Request
from seriatim_models.conformance.reference import Reference
from seriatim_models.conformance.system import System
from seriatim_models.conformance.vector_scripts import VectorScript, all_scripts
from seriatim_models.files import encoded, read_document
from seriatim_models.history.complete import complete
from seriatim_models.history.event import Event
from seriatim_models.programs.fair_simulation import TABLES
from seriatim_models.properties.base import Verdict
from seriatim_models.properties.blackbox.consumers import SoleConsumer

SCHEMA = "seriatim-vectors/1"
BYTES_MAX = 2**22
REFERENCE = "reference"
PUBLISHED = "published"


class VectorError(ValueError):
    """A file is no vector; the message names file and field."""


class RequestOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one request led to, until nothing more happens."""

    refused: int | None = None
    """The code; 0 if it has none."""
    got: str | None = None
    """Empty for a get that found nothing."""
    redelivered: bool | None = None
    pushed: list[tuple[int, str, str, bool | None]] = []
    """Deliveries: channel, consumer, message, redelivered; by channel, in the order of each channel."""
    returned: list[tuple[str, int]] = []
    served: list[int] = []


class Accepted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One list of outcomes that is right, one for each request, and who has it."""

    by: list[str]
    see: list[RequestOutcome]
    against: list[str] = []
    """Features that these outcomes break: whoever declares one of them is not excused by who has them."""
    within: float | None = None
    """Relative error that each number of `served` may have."""


class Vector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A script with everything that is accepted of it."""

    schema: str
    id: str
    title: str
    needs: list[str]
    """Operations and features that it takes."""
    requests: list[Request]
    accepted: list[Accepted]


class VectorResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one vector: who it agrees with; or the first request where it parts from all; or why not run."""

    id: str
    title: str
    agrees: list[str] = []
    why: str = ""
    skipped: bool = False


# ---- running a script


def outcomes(system: System, requests: Sequence[Request]) -> list[RequestOutcome]:
    """One for each request. Raises `Fault`."""
    system.reset()
    held: dict[tuple[int, str], int] = {}
    seen = []
    for request in requests:
        asked = request
        if request.op in ("ack", "nack", "reject") and request.dtag is None:
            dtag = held.pop((request.ch, request.m), None)
            if dtag is None:
                # It never had what it is to settle: that alone is another outcome.
                seen.append(RequestOutcome(refused=0))
                continue
            asked = msgspec.structs.replace(request, m="", dtag=dtag)
        answer = system.do(asked)
        system.sync()
        pushes = system.pushed()
        for ch, m, dtag in [(p.ch, p.m, p.dtag) for p in pushes] + [
            (request.ch, answer.m, answer.dtag)
        ]:
            if dtag is not None and m:
                held[ch, m] = dtag
        seen.append(_outcome(request, answer, pushes))
    return seen


def _outcome(request: Request, answer: Answer, pushes: list[Push]) -> RequestOutcome:
    refused = None if answer.ok else answer.code or 0
    for push in pushes:
        if push.ev == "closed" and refused is None:
            refused = (
                push.code or 0
            )  # an asynchronous refusal: the channel is closed with the reason
    delivered = [(p.ch, p.ctag, p.m, p.redelivered) for p in pushes if p.ev == "deliver"]
    got = answer.m if request.op == "get" and answer.ok else None
    return RequestOutcome(
        refused=refused,
        got=got,
        redelivered=answer.redelivered if got else None,
        pushed=sorted(delivered, key=lambda d: d[0]),
        returned=[(p.m, p.code or 0) for p in pushes if p.ev == "return"],
        served=answer.served,
    )


def needs(asked: VectorScript) -> list[str]:
    """Operations and features that a script takes."""
    return sorted({*(r.op for r in asked.requests), *asked.needs})


# ---- filling


def fill(observed: Path) -> Iterator[Vector]:
    """Every vector, from what the reference does now and what others were seen to do. Raises `VectorError`."""
    reference = Local(Reference)
    seen = {path.stem: read_observed(path) for path in sorted(observed.glob("*.json"))}
    for asked in all_scripts():
        for name, by_id in seen.items():
            if asked.id in by_id:
                _check_answered(
                    observed / f"{name}.json", asked.id, by_id[asked.id], asked.requests
                )
        accepted: list[Accepted] = []
        if not set(needs(asked)) - reference.can:
            accepted.append(Accepted(by=[REFERENCE], see=outcomes(reference, asked.requests)))
        for name, by_id in seen.items():
            if asked.id in by_id:
                _accept(accepted, name, by_id[asked.id])
        accepted += _published(asked)
        accepted = [
            msgspec.structs.replace(a, against=_against(asked.requests, a.see)) for a in accepted
        ]
        yield Vector(
            schema=SCHEMA,
            id=asked.id,
            title=asked.title,
            needs=needs(asked),
            requests=asked.requests,
            accepted=accepted,
        )
    reference.end()


def _accept(accepted: list[Accepted], name: str, see: list[RequestOutcome]) -> None:
    for n, known in enumerate(accepted):
        if known.see == see:
            accepted[n] = msgspec.structs.replace(known, by=[*known.by, name])
            return
    accepted.append(Accepted(by=[name], see=see))


def _published(asked: VectorScript) -> list[Accepted]:
    for name, (_, counts, error) in TABLES.items():
        if asked.id == f"dwrr-table-{name.replace(' ', '-')}":
            return [
                Accepted(by=[PUBLISHED], see=[RequestOutcome(served=list(counts))], within=error)
            ]
    return []


def _against(requests: Sequence[Request], see: Sequence[RequestOutcome]) -> list[str]:
    """Features that outcomes break, judged as a recording of them would be: exclusivity by P10."""
    consumers = [(r, s) for r, s in zip(requests, see, strict=True) if r.op == "consume"]
    opened = sorted({r.ch for r, _ in consumers})
    events = [Event(i=n, ev="ch_open", conn="c", ch=ch) for n, ch in enumerate(opened)]
    for n, (request, seen) in enumerate(consumers, len(events)):
        done = Event(
            i=n,
            t=n,
            lvl="broker",
            ev="consume",
            conn="c",
            ch=request.ch,
            q=request.q,
            ctag=request.ctag,
            exclusive=request.exclusive,
            ph="" if seen.refused is None else "fail",
        )
        events.append(done)
    found = SoleConsumer().check(complete(events))
    return ["exclusive"] if found.verdict is Verdict.VIOLATED else []


def observe(system: System) -> dict[str, list[RequestOutcome]]:
    """What a system does with every script that it can run. Raises `Fault`."""
    can = {asked.id: asked for asked in all_scripts() if not set(needs(asked)) - system.can}
    return {id: outcomes(system, asked.requests) for id, asked in can.items()}


# ---- files


def encode(value: object) -> bytes:
    """JSON to be read by people too."""
    return msgspec.json.format(encoded(value), indent=1) + b"\n"


def read_observed(path: Path) -> dict[str, list[RequestOutcome]]:
    """What a system was seen to do, by vector. Raises `VectorError`."""
    return read_document(path, dict[str, list[RequestOutcome]], "no vector", VectorError, BYTES_MAX)


def _check_answered(
    path: Path, field: str, see: Sequence[RequestOutcome], requests: Sequence[Request]
) -> None:
    if len(see) != len(requests):
        raise VectorError(f"{path}: field {field}: one outcome for each request is needed")


def read_vectors(folder: Path) -> list[Vector]:
    """The vectors of a folder. Raises `VectorError`."""
    paths = [folder] if folder.is_file() else sorted(folder.glob("*.json"))
    if not paths:
        raise VectorError(f"{folder}: there are no vectors")
    found = []
    for path in paths:
        vector = read_document(path, Vector, "no vector", VectorError, BYTES_MAX)
        if vector.schema != SCHEMA:
            raise VectorError(f"{path}: field schema: {vector.schema!r} is not {SCHEMA!r}")
        for n, accepted in enumerate(vector.accepted):
            _check_answered(path, f"accepted[{n}].see", accepted.see, vector.requests)
        found.append(vector)
    return found


# ---- consuming


def consume(system: System, vectors: Sequence[Vector], by: str = "") -> Iterator[VectorResult]:
    """Compare a system with vectors; `by` is whose outcomes count. A fault is an outcome of its own.

    Without `by` those of all count that keep what the system declares: who says that it has exclusive consumers is
    not excused by another that lets two be exclusive.
    """
    for vector in vectors:
        lacks = sorted(set(vector.needs) - system.can)
        accepted = [
            a for a in vector.accepted if (by in a.by if by else not system.can & {*a.against})
        ]
        if lacks or not accepted:
            why = (
                f"cannot {', '.join(lacks)}"
                if lacks
                else f"{by} has no outcome of it"
                if by
                else "nobody has an outcome of it"
            )
            yield VectorResult(id=vector.id, title=vector.title, why=why, skipped=True)
            continue
        try:
            seen = outcomes(system, vector.requests)
        except Fault as fault:
            yield VectorResult(id=vector.id, title=vector.title, why=str(fault))
            continue
        agrees = [name for a in accepted if agree(a, seen) for name in a.by]
        why = "" if agrees else first_difference(vector, accepted, seen)
        yield VectorResult(id=vector.id, title=vector.title, agrees=agrees, why=why)


def agree(accepted: Accepted, seen: Sequence[RequestOutcome]) -> bool:
    """Whether the outcomes are those accepted; a flag or code that the implementation does not give counts as equal."""
    return all(map(_alike, accepted.see, seen, [accepted.within] * len(seen)))


def _alike(right: RequestOutcome, seen: RequestOutcome, within: float | None) -> bool:
    if within is not None:
        pairs = list(zip(right.served, seen.served, strict=False))
        return len(right.served) == len(seen.served) and all(
            abs(a - b) <= within * a for a, b in pairs
        )
    if (
        right.refused is not None
        and seen.refused is not None
        and 0 in (right.refused, seen.refused)
    ):
        seen = msgspec.structs.replace(seen, refused=right.refused)
    if seen.redelivered is None:
        seen = msgspec.structs.replace(seen, redelivered=right.redelivered)
    if any(flag is None for *_, flag in seen.pushed):
        unmarked = [(*rest, None) for *rest, _ in right.pushed]
        return [(*rest, None) for *rest, _ in seen.pushed] == unmarked
    return right == seen


def first_difference(
    vector: Vector, accepted: Sequence[Accepted], seen: Sequence[RequestOutcome]
) -> str:
    """Where it parts from what is accepted, in one sentence."""
    at = max(
        next(
            (
                n
                for n, (a, b) in enumerate(zip(x.see, seen, strict=True))
                if not _alike(a, b, x.within)
            ),
            0,
        )
        for x in accepted
    )
    asked = msgspec.json.encode(vector.requests[at]).decode()
    right = " or ".join(dict.fromkeys(msgspec.json.encode(a.see[at]).decode() for a in accepted))
    return f"request {at + 1}, {asked}: accepted is {right}; it was {msgspec.json.encode(seen[at]).decode()}"
