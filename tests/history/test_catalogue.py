"""The catalogue of events: what is recorded is in it, what is in it is recorded, and reading holds lines to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seriatim_models.explorer import Random, World, explore
from seriatim_models.history import Event, catalogue, read_history, write_history
from seriatim_models.history.catalogue import BLACK_BOX, WHITE_BOX, Arg, EventKind
from seriatim_models.history.event import event
from seriatim_models.history.header import Header
from seriatim_models.programs import PROGRAMS
from seriatim_models.programs.check import history, runnable
from seriatim_workshop import event_catalogue

ROOT = Path(__file__).resolve().parent.parent.parent
KINDS = [kind for kinds in WHITE_BOX.values() for kind in kinds]
NAMES = {kind.name for kind in KINDS}


def test_the_page_is_up_to_date() -> None:
    text = (ROOT / "spec" / "HISTORY.md").read_text(encoding="utf-8")
    assert event_catalogue.renewed(text) == text, (
        "spec/HISTORY.md differs from the catalogue: "
        "run python -m seriatim_workshop.event_catalogue spec/HISTORY.md and look at the difference"
    )


# ---- what is recorded


@pytest.fixture(scope="module")
def recorded() -> list[list[Event]]:
    """What the references record under every program, a few schedules each."""
    found: list[list[Event]] = []

    def keep(world: World) -> None:
        found.append(history(world))

    for program in PROGRAMS.values():
        explore(runnable(program, None), Random(seed=1), max_executions=3, on_execution=keep)
    return found


@pytest.mark.slow
def test_everything_that_is_recorded_is_declared_and_can_be_read_back(
    recorded: list[list[Event]], tmp_path: Path
) -> None:
    events = [e for run in recorded for e in run]
    numbered = [msgspec.structs.replace(e, i=i) for i, e in enumerate(events)]
    path = tmp_path / "all.jsonl"
    write_history(path, numbered)
    read = read_history(path)
    assert not read.quarantine, read.quarantine[0]
    assert read.events == [msgspec.structs.replace(e, run="all") for e in numbered]
    assert {e.ev for e in events} <= NAMES
    fields = declared()
    undeclared = {(e.ev, name) for e in events for name in e.args if name not in fields[e.ev]}
    assert not undeclared


def declared() -> dict[str, set[str]]:
    """The fields of `args` of each white-box event."""
    fields: dict[str, set[str]] = {}
    for kind in KINDS:
        own = {f.name for f in (*kind.needs, *kind.may) if isinstance(f, Arg)}
        fields.setdefault(kind.name, set()).update(own)
    return fields


def test_every_white_box_event_is_recorded_or_says_why_not(recorded: list[list[Event]]) -> None:
    seen = {e.ev for run in recorded for e in run}
    assert {k.name for k in KINDS if not k.unrecorded} <= seen
    assert not {k.name for k in KINDS if k.unrecorded} & seen
    phases = {(e.ev, e.ph) for run in recorded for e in run}
    due = {(k.name, ph) for k in KINDS if not k.unrecorded for ph in k.phases}
    assert due - phases <= {("publish", "info")}  # a disk that fails, which tests/log has


def test_every_black_box_event_is_recorded_or_says_why_not() -> None:
    """The recorders of `conformance` have its name; or it is in a recording of a broker under tests/data."""
    seen = {
        e.ev for file in (ROOT / "tests" / "data").glob("*.gz") for e in read_history(file).events
    }
    recorders = ("driving", "proxy", "wire_recording", "concurrent/driving", "faults/nemesis")
    for recorder in recorders:
        path = ROOT / "models" / "seriatim_models" / "conformance" / f"{recorder}.py"
        for found in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(found, ast.Constant) and isinstance(found.value, str):
                seen.add(found.value)
    assert {k.name for k in BLACK_BOX if not k.unrecorded} <= seen
    assert not {k.name for k in BLACK_BOX if k.unrecorded} & seen


# ---- what reading makes of them

VALUES: dict[str, Any] = {"ch": 1, "pos": 1, "dtag": 1, "size": 1, "prefetch": 1}
VALUES |= {"redelivered": False, "autoack": False, "multiple": False}


def example(kind: EventKind, number: int = 0) -> dict[str, Any]:
    """A line with every required field of a kind."""
    line: dict[str, Any] = {"i": number, "ev": kind.name, "lvl": "model", "args": {}}
    if kind.phases:
        line["ph"] = kind.phases[0]
    for field in kind.needs:
        if isinstance(field, Arg):
            line["args"][field.name] = value_of(field.type)
        else:
            line[field] = VALUES.get(field, "x")
    if kind.form is not None and kind.form.value is not None:
        line["args"][kind.form.arg.name] = kind.form.value
    return line


def value_of(type_: Any) -> object:
    """Some value of a declared type."""
    values: tuple[object, ...] = ("a", 0, True, 1.5, [], [0, 0], [0, 0, 0], {})
    for value in (*values, "begin", "submit", "leave"):
        try:
            msgspec.convert(value, type_)
        except msgspec.ValidationError:
            continue
        return value
    raise AssertionError(type_)


def reason(tmp_path: Path, line: dict[str, Any], header: Header | None = None) -> str:
    """Why a line is rejected; empty if it is not."""
    path = tmp_path / "one.jsonl"
    good = {"i": 10**6, "ev": "theirs"}
    lines = [{"schema": "qh/1", **({"lvl": header.lvl} if header else {})}, line, good]
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in lines))
    rejected = read_history(path).quarantine
    return rejected[0].reason if rejected else ""


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: f"{k.name} {'/'.join(k.phases)}".strip())
def test_a_white_box_line_needs_every_required_field_of_its_type(
    kind: EventKind, tmp_path: Path
) -> None:
    assert reason(tmp_path, example(kind)) == ""
    for field in kind.needs:
        line = example(kind)
        if isinstance(field, str):
            del line[field]
            assert reason(tmp_path, line) == f"field {field}: missing from {kind.name}"
            continue
        chooses = kind.form is not None and kind.form.arg is field
        if chooses and kind.form is not None and kind.form.value is None:
            continue  # without it the event is of another form
        del line["args"][field.name]
        assert f"field {field.name}: missing from {kind.name}" == reason(tmp_path, line)
        line["args"][field.name] = {"no": object.__name__}
        assert reason(tmp_path, line).startswith(f"field {field.name}") or field.type in mappings()


def mappings() -> list[Any]:
    """Types of which the wrong value of the test above is one."""
    return [f.type for k in KINDS for f in k.needs if isinstance(f, Arg) and "dict" in str(f.type)]


def test_a_level_that_the_header_gives_counts(tmp_path: Path) -> None:
    line = {"i": 1, "ev": "notify", "args": {}}
    assert reason(tmp_path, line) == ""
    assert reason(tmp_path, line, Header(lvl="model")) == "field sub: missing from notify"


def test_a_phase_that_an_event_does_not_have_is_rejected(tmp_path: Path) -> None:
    line = {"i": 1, "ev": "release", "lvl": "model", "ph": "fail", "m": "m", "args": {"sub": "C"}}
    assert reason(tmp_path, line) == "field ph: 'fail' is no phase of release, which has invoke, ok"


def test_what_is_not_declared_is_allowed(tmp_path: Path) -> None:
    assert reason(tmp_path, {"i": 1, "ev": "theirs", "lvl": "model", "args": {"sub": 7}}) == ""
    kind = next(k for k in KINDS if k.name == "notify")
    line = example(kind)
    line["args"]["colour"] = [1, {}]
    assert reason(tmp_path, line) == ""


def test_below_level_model_names_of_white_box_events_are_other_peoples(tmp_path: Path) -> None:
    assert reason(tmp_path, {"i": 1, "ev": "release", "lvl": "api"}) == ""


def parquet(tmp_path: Path, events: list[Event]) -> Iterator[str]:
    """Why rows of a Parquet history are rejected."""
    path = tmp_path / "h.parquet"
    write_history(path, events)
    for rejected in read_history(path).quarantine:
        yield rejected.reason


def test_parquet_is_held_to_the_same(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    good = event(0, 0, "t", "notify", {"sub": "C", "lvl": "model"})
    bad = event(1, 1, "t", "notify", {"sub": 5, "lvl": "model"})
    assert list(parquet(tmp_path, [good, bad])) == ["field sub: expected `str`, got `int`"]


def test_typed_access() -> None:
    e = event(0, 0, "t", "entry_cas", {"m": "m", "old": "AVAILABLE", "sub": "C"})
    assert (catalogue.old_state(e), catalogue.sub(e)) == ("AVAILABLE", "C")
    assert catalogue.group.get(e, "none") == "none"
    with pytest.raises(KeyError):
        catalogue.new_state(e)
