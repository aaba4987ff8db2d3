"""The recordings of RabbitMQ in qh/0, as qh/1 events."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from seriatim_models.history import read_history

DATA = Path(__file__).parent.parent / "data"


def test_every_line_of_the_recordings_becomes_an_event() -> None:
    lockstep = read_history(DATA / "rabbit-classic-lockstep.jsonl.gz")
    competing = read_history(DATA / "rabbit-classic-competing.jsonl.gz")
    assert (lockstep.n_lines, len(lockstep.events), lockstep.quarantine) == (13529, 13528, [])
    assert (competing.n_lines, len(competing.events), competing.quarantine) == (17784, 17783, [])
    assert lockstep.header.run == "rabbit-classic-lockstep"
    assert lockstep.header.broker == "rabbitmq 3.10.8"
    assert Counter(e.ev for e in lockstep.events) == {
        "publish": 6000, "deliver": 4520, "ack": 1944, "nack": 918, "reject": 134, "conn_close": 3,
        "ch_open": 2, "qos": 2, "consume": 2, "declare": 1, "conn_open": 1, "note": 1,
    }  # fmt: skip


def test_what_the_importer_works_out() -> None:
    events = read_history(DATA / "rabbit-classic-competing.jsonl.gz").events
    by_index = {e.i: e for e in events}
    first = by_index[2088]
    assert (first.ev, first.m, first.pub, first.pseq, first.gen) == ("deliver", "0:0", "0", 0, 1)
    assert (first.lvl, first.proc, first.dtag, first.redelivered) == ("api", "con0", 1, False)
    assert max(e.gen or 0 for e in events) > 1, "channel numbers are used again"
    begun = {e.i: e for e in events if e.op == e.i}
    done = [e for e in events if e.op is not None and e.op != e.i]
    assert all(
        begun[e.op].ev == e.ev and begun[e.op].conn == e.conn for e in done if e.op is not None
    )
    assert sum(e.ev == "publish" for e in done) == 4000
    assert {(e.scope, e.prefetch) for e in events if e.ev == "qos" and e.ph == "invoke"} == {
        ("consumer", 8)
    }
    assert events[-1].args == {"depth": 0}


def test_rejects_lines_without_index_or_name(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(
        '{"i":0,"ev":"history","schema":"qh/0","client":"pika 1"}\n'
        '{"ev":"ack"}\n{"i":1}\n{"i":2,"ev":"deliver"}\n{"i":3,"ev":"final","depth":0,"q":"q"}\n'
    )
    h = read_history(path)
    assert [(e.ev, e.q, e.args) for e in h.events] == [("note", "q", {"depth": 0})]
    assert [r.reason for r in h.quarantine] == [
        "field i: missing or no number",
        "field ev: missing",
        "field m: missing from deliver",
    ]


def test_a_number_behind_a_name_is_of_ascii_digits_and_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    names = ["a:1", "a:\u00b2", "a:" + "9" * 5000, f"a:{2**63}", f"a:{2**63 - 1}", "a:-1", "a:"]
    lines = [{"i": n, "ev": "publish", "q": "q", "m": m} for n, m in enumerate(names)]
    head = {"ev": "history", "schema": "qh/0", "client": "pika 1"}
    path.write_text("\n".join(json.dumps(line) for line in (head, *lines)) + "\n")
    history = read_history(path)
    assert not history.quarantine
    numbered = {"a:1": 1, f"a:{2**63 - 1}": 2**63 - 1}
    assert [(e.pub, e.pseq) for e in history.events] == [
        ("a", numbered[m]) if m in numbered else ("", None) for m in names
    ]
