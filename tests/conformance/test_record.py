"""Recording at the frame level, and what a recording leaves open."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pika")

import pika.exceptions
from pika import BasicProperties, frame, spec

from seriatim_models.cli import run
from seriatim_models.conformance import recording
from seriatim_models.conformance.lint import SENTENCES, lint
from seriatim_models.conformance.protocol import Fault
from seriatim_models.conformance.proxy import Proxy
from seriatim_models.conformance.recording import address, through
from seriatim_models.conformance.wire_recording import FrameReader, WireRecorder, WireSession
from seriatim_models.history import Event, read_history
from seriatim_models.history.complete import complete
from seriatim_models.history.unrecorded import with_gaps

from .conftest import ROOT


def method(ch: int, what: Any) -> bytes:
    return bytes(frame.Method(ch, what).marshal())


def content(ch: int, what: Any, m: str, body: bytes = b"body") -> bytes:
    header = frame.Header(ch, len(body), BasicProperties(message_id=m)).marshal()
    half = len(body) // 2
    parts = [frame.Body(ch, part).marshal() for part in (body[:half], body[half:]) if part]
    return method(ch, what) + bytes(header) + b"".join(map(bytes, parts))


def heard(*said: tuple[str, bytes]) -> list[Event]:
    """What is recorded when client and broker say this."""
    recorder = WireRecorder()
    session = WireSession(recorder, "c1")
    halves = {
        "client": FrameReader(session.from_client),
        "broker": FrameReader(session.from_broker),
    }
    for who, data in said:
        for n in range(len(data)):  # in the smallest pieces there are
            halves[who].feed(data[n : n + 1])
    session.ended()
    return recorder.events


def test_a_conversation_becomes_a_history() -> None:
    publish = spec.Basic.Publish(exchange="", routing_key="q")
    events = heard(
        ("client", b"AMQP\x00\x00\x09\x01"),
        ("client", method(1, spec.Channel.Open())),
        ("broker", method(1, spec.Channel.OpenOk())),
        ("client", method(1, spec.Confirm.Select())),
        ("client", content(1, publish, "m0")),
        ("broker", method(1, spec.Basic.Ack(delivery_tag=1))),
        ("client", method(1, spec.Basic.Consume(queue="q", consumer_tag=""))),
        ("broker", method(1, spec.Basic.ConsumeOk(consumer_tag="named"))),
        ("broker", content(1, spec.Basic.Deliver("named", 1, False, "", "q"), "m0")),
        ("client", method(1, spec.Basic.Nack(delivery_tag=1, requeue=True))),
        ("client", method(1, spec.Channel.Close(200, "bye", 0, 0))),
        ("broker", content(1, spec.Basic.Deliver("named", 2, True, "", "q"), "m0")),
        ("broker", method(1, spec.Channel.CloseOk())),
    )
    assert [(e.ev, e.ph) for e in events] == [
        ("conn_open", ""),
        ("ch_open", "invoke"),
        ("ch_open", "ok"),
        ("publish", "invoke"),
        ("publish", "ok"),
        ("consume", "invoke"),
        ("consume", "ok"),
        ("deliver", ""),
        ("nack", ""),
        ("ch_close", "invoke"),
        ("deliver", ""),  # in flight to a channel that closes: no client library hands that on
        ("ch_close", "ok"),
        ("conn_drop", ""),
    ]
    assert events[5].ctag == "named"  # the broker chose it, and the request was amended
    done = list(complete(events))
    assert (done[7].q, done[8].ms, done[10].redelivered) == ("q", ["m0"], True)


def test_an_empty_get_says_that_the_queue_was_seen_empty() -> None:
    events = heard(
        ("client", method(1, spec.Basic.Get(queue="q"))),
        ("broker", method(1, spec.Basic.GetEmpty())),
    )
    assert [(e.ev, e.q, e.args) for e in events if e.ev == "note"] == [("note", "q", {"depth": 0})]


def test_a_transaction_confirms_what_it_holds() -> None:
    publish = spec.Basic.Publish(exchange="", routing_key="q")
    events = heard(
        ("client", method(1, spec.Tx.Select())),
        ("client", content(1, publish, "m0") + content(1, publish, "m1")),
        ("broker", method(1, spec.Tx.CommitOk())),
    )
    assert [(e.m, e.ph) for e in events if e.ev == "publish"] == [
        ("m0", "invoke"),
        ("m1", "invoke"),
        ("m0", "ok"),
        ("m1", "ok"),
    ]


@contextmanager
def echo() -> Iterator[int]:
    """A server that sends back what it gets; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                while block := peer.recv(4096):
                    peer.sendall(block)

        threading.Thread(target=serve, daemon=True).start()
        yield int(server.getsockname()[1])


def test_what_cannot_be_parsed_is_forwarded_all_the_same() -> None:
    recorder = WireRecorder()
    with (
        echo() as port,
        Proxy("127.0.0.1", port, recorder) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as client,
    ):
        for sent in (b"\x01\x00\x01\x00\x00\x00\x02xx\x00", b"no frames at all"):
            client.sendall(sent)
            got = b""
            while len(got) < len(sent):
                got += client.recv(4096)
            assert got == sent
    assert recorder.unreadable == 1
    assert [e.ev for e in recorder.events] == ["conn_open", "conn_drop"]


def test_a_recording_that_is_full_takes_no_more() -> None:
    recorder = WireRecorder(limit=2)
    for _ in range(5):
        recorder.record("note")
    assert (len(recorder.events), recorder.full) == (2, True)


@pytest.mark.parametrize("url", ["http://x/", "amqp://", "amqp://h:port/", ""])
def test_rejects_a_url_that_is_none(url: str, tmp_path: Path) -> None:
    with pytest.raises(Fault, match="not a URL"):
        address(url)
    assert run(["record", "--amqp", url, "--out", str(tmp_path / "r.jsonl")]) == 2


def test_rejects_a_broker_that_is_not_there_and_a_folder_that_is_not_there(tmp_path: Path) -> None:
    nobody = ["record", "--amqp", "amqp://127.0.0.1:1/", "--out"]
    assert run([*nobody, str(tmp_path / "r.jsonl")]) == 2
    assert run([*nobody, str(tmp_path / "no" / "r.jsonl")]) == 2


def test_rejects_a_broker_that_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Something listens at its port, and answers no handshake."""
    monkeypatch.setattr(recording, "GRACE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"amqp://127.0.0.1:{server.getsockname()[1]}/"
        assert run(["record", "--amqp", url, "--out", str(tmp_path / "r.jsonl")]) == 2
    assert "cannot be connected: Timeout" in capsys.readouterr().err


def test_rejects_a_port_to_listen_on_that_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [
            "--amqp",
            "amqp://127.0.0.1/",
            "--listen",
            port,
            "--out",
            str(tmp_path / "r.jsonl"),
        ]
        assert run(["record", *words]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert said == f"seriatim: --listen: port {port} of 127.0.0.1: Address already in use"


def test_rejects_a_broker_that_refuses_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Refuses:
        def __init__(self, near: object) -> None: ...

        def channel(self) -> Refuses:
            return self

        def queue_declare(self, *words: object, **arguments: object) -> None:
            raise pika.exceptions.ChannelClosedByBroker(406, "no such type")

    monkeypatch.setattr(pika, "BlockingConnection", Refuses)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"amqp://127.0.0.1:{server.getsockname()[1]}/"
        assert run(["record", "--amqp", url, "--out", str(tmp_path / "r.jsonl")]) == 2
    assert "refused a queue: no such type" in capsys.readouterr().err


def test_the_proxy_keeps_user_and_host() -> None:
    assert through("amqp://me:secret@far:5672/vhost?heartbeat=5", 7) == (
        "amqp://me:secret@127.0.0.1:7/vhost?heartbeat=5"
    )


# ---- lint


def ids(*events: Event) -> dict[str, int]:
    return {hint.id: hint.count for hint in lint(events)}


def event(i: int, ev: str, **fields: Any) -> Event:
    return Event(i=i, t=i, ev=ev, lvl="wire", **fields)


def test_each_hint_has_a_recording_that_shows_it() -> None:
    found = ids(
        event(0, "conn_open", conn="a"),
        event(1, "ch_open", conn="a", ch=1),
        event(2, "publish", q="q", m="m0", pub="p", pseq=0),
        event(3, "publish", q="q", m="body:1", ph="invoke", op=1),
        event(4, "deliver", conn="a", ch=1, ctag="t", dtag=2, m="m0", redelivered=True),
        event(5, "deliver", conn="a", ch=1, ctag="t", dtag=3, m="other"),
        event(6, "ack", conn="a", ch=1, dtag=9),
        event(7, "gap"),
        event(8, "conn_open", conn="b"),
        event(9, "conn_drop", conn="b"),
        Event(i=10, t=3, ev="note"),
        Event(i=11, t=None, ev="note"),
        Event(i=12, t=0, ev="note", clk="elsewhere"),
    )
    found |= ids(event(5, "publish", q="q", m="m0"))  # the first is not the beginning
    found |= ids(
        event(0, "publish", q="q", m="m0"),
        event(1, "deliver", q="q", conn="a", ch=1, ctag="t", dtag=1, m="m0", redelivered=True),
    )
    found |= ids(
        event(0, "deliver", q="log", m="m0", pos=0),
        event(1, "commit", q="log", ctag="g", pos=0),
        *(event(n, "declare", q="late", args={"delay": n}) for n in (2, 3)),
    )
    found |= ids(event(0, "deliver", q="q", conn="a", ch=1, ctag="t", dtag=0, m="m0"))
    found |= ids(*with_gaps([event(0, "publish", q="q", m="m0")], ["nack"]))
    of_one_tag = ("ch_open", "consume", "ch_close", "ch_open", "consume")
    found |= ids(
        *(
            event(n, ev, conn="a", ch=1, ctag="t" if ev == "consume" else "")
            for n, ev in enumerate(of_one_tag)
        )
    )
    assert set(found) == set(SENTENCES)


def test_a_whole_recording_leaves_nothing_open() -> None:
    assert (
        ids(
            event(0, "conn_open", conn="a"),
            event(1, "ch_open", conn="a", ch=1),
            event(2, "qos", conn="a", ch=1, prefetch=1, scope="consumer"),
            event(3, "publish", q="q", m="m0", ph="invoke", op=1, conn="a", ch=1),
            event(4, "publish", q="q", m="m0", ph="ok", op=1, conn="a", ch=1),
            event(5, "consume", q="q", ctag="t", conn="a", ch=1),
            event(6, "deliver", conn="a", ch=1, ctag="t", dtag=1, m="m0", redelivered=False),
            event(7, "ack", conn="a", ch=1, dtag=1),
            event(8, "note", q="q", args={"depth": 0}),
            event(9, "ch_close", conn="a", ch=1),
            event(10, "conn_close", conn="a"),
        )
        == {}
    )


def test_the_recordings_have_acquisitions_that_nobody_saw(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = ROOT / "tests" / "data" / "rabbit-classic-competing.jsonl.gz"
    hints = {hint.id: hint.count for hint in lint(read_history(path).events)}
    assert hints["unobserved"] > 0
    assert run(["lint", str(path), "--json", "-"]) == 0
    assert '"unobserved"' in capsys.readouterr().out


def test_rejects_what_is_no_recording(tmp_path: Path) -> None:
    assert run(["lint", str(tmp_path / "none.jsonl")]) == 2
