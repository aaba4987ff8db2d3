"""Adapters of brokers behind a socket, against a few bytes of a server; `make conform` has the brokers themselves."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from seriatim_models.conformance.driving import drive
from seriatim_models.conformance.local import Local, Refused
from seriatim_models.conformance.profiles import PROFILES
from seriatim_models.conformance.script import ScriptStep
from seriatim_models.conformance.search import SearchBounds, search
from seriatim_workshop.systems.adapters import TARGET
from seriatim_workshop.systems.served import NsqConnection, StompConnection, until_quiet


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, *chunks: bytes) -> Iterator[None]:
    """A server that says these bytes, one chunk for each that it is sent, and then closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                for chunk in chunks:
                    client.recv(2**16)
                    client.sendall(chunk)
                client.shutdown(socket.SHUT_WR)
                while client.recv(2**16):  # else what is not read would reset the connection
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        monkeypatch.setenv(TARGET, f"127.0.0.1:{server.getsockname()[1]}:0")
        yield
        thread.join()


def test_a_receipt_counts_though_the_connection_is_closed_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected = b"CONNECTED\nversion:1.2\nserver:test/1.0\n\n\0\n"
    message = b"MESSAGE\nsubscription:c1\nack:7\nack:8\n\nm0\0RECEIPT\nreceipt-id:1\n\n\0"
    with answering(monkeypatch, connected, message):
        connection = StompConnection()
        connection.ask("DISCONNECT", {})
        connection.socket.close()
    assert connection.server == "test/1.0"
    assert [(headers["ack"], body) for headers, body in connection.messages] == [("7", "m0")]


def test_a_refusal_of_stomp_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        answering(monkeypatch, b"ERROR\nmessage:no\n\n\0"),
        pytest.raises(RuntimeError, match="no"),
    ):
        StompConnection()


def nsq_frame(kind: int, data: bytes) -> bytes:
    return struct.pack(">II", len(data) + 4, kind) + data


def test_a_message_of_nsq_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    body = struct.pack(">QH", 1, 2) + b"0123456789abcdef" + b"m0"
    said = nsq_frame(0, b"OK") + nsq_frame(0, b"_heartbeat_") + nsq_frame(2, body)
    seen: list[tuple[bytes, int, str]] = []
    with answering(monkeypatch, said, b""):
        connection = NsqConnection(lambda *message: seen.append(message))
        until_quiet(connection.take, lambda: bool(seen), "the test")
        connection.socket.close()
    assert seen == [(b"0123456789abcdef", 2, "m0")]


def test_what_never_comes_to_rest_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seriatim_workshop.systems.served.PATIENCE", 0.05)
    with pytest.raises(TimeoutError, match="the test does not come to rest"):
        until_quiet(lambda: None, lambda: False, "the test")


class GroupLocked:
    """A FIFO queue that hands out one message of a group at a time, as SQS documents it. Right."""

    can = ("publish", "get", "ack", "nack", "open", "close", "groups")

    def __init__(self) -> None:
        self.waiting: list[tuple[int, str, str]] = []
        self.held: dict[tuple[int, int], tuple[int, str, str]] = {}
        self.place = 0
        self.tags: dict[int, int] = {}

    def open(self, ch: int) -> None:
        self.tags[ch] = 0

    def close(self, ch: int) -> None:
        for key in [key for key in self.held if key[0] == ch]:
            self.nack(*key)

    def publish(self, m: str, key: str = "") -> None:
        self.place += 1
        self.waiting.append((self.place, m, key))

    def get(self, ch: int) -> tuple[str, int, None] | None:
        locked = {key for _, _, key in self.held.values()}
        for message in sorted(self.waiting):
            if message[2] not in locked:
                self.waiting.remove(message)
                self.tags[ch] += 1
                self.held[ch, self.tags[ch]] = message
                return message[1], self.tags[ch], None
        return None

    def ack(self, ch: int, dtag: int) -> None:
        if self.held.pop((ch, dtag), None) is None:
            raise Refused("unknown delivery tag")

    def nack(self, ch: int, dtag: int) -> None:
        self.waiting.append(self.held.pop((ch, dtag)))


def test_a_group_that_is_locked_is_not_lost() -> None:
    """What is held of a group keeps the rest back: nobody says that the queue is empty before its channel closes."""
    steps = [
        ScriptStep(op="publish", q="q", key="k"),
        ScriptStep(op="publish", q="q", key="k"),
        ScriptStep(op="publish", q="q"),
        ScriptStep(op="get", q="q"),
        ScriptStep(op="get", q="q"),
        ScriptStep(op="nack", m="m2"),
    ]
    run = drive(Local(GroupLocked), steps)
    taken = [e.m for e in run.events if e.ev == "get" and e.m]
    assert sorted(set(taken)) == ["m0", "m1", "m2"]
    outcome = search(
        Local(GroupLocked), PROFILES["sqs-fifo"], SearchBounds(seconds=60.0, scripts=80), seed=1
    )
    assert [w.property for w in outcome.witnesses] == []
    assert "sqs-fifo" in outcome.tested
