#!/usr/bin/env python3
"""A right queue that means no good: `hostile.py NAME` is one way of that, for each version of the protocol.

What it does beside the protocol begins with the `AT`-th request for a get, so that something was recorded before.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

AT = 3
CAN = ["publish", "get", "ack", "nack", "open", "close"]
WORDS = """
publish get ack nack reject qos consume cancel open close recover read seek commit tx-begin tx-commit
tx-rollback count declare dwrr dwrr-table multiple drop dead-letter batch channel-qos whole-qos prefetch-size
exclusive no-local priority message-priority groups held-groups queues partitions redelivered autoack lease
waits delay ttl mandatory immediate
""".split()  # noqa: SIM905 - a table of words
"""Every word that can be declared."""
MIB = 2**20
HOUR = 3600.0
MARKED = "\x00\x1b]0;owned\x07\x1b[2J\u202e[/bold]<script>\n\r\x9b31m"
"""What a terminal, a page or the markup of the terminal library would take for a command."""

Message = dict[str, Any]
queue: list[str] = []
held: dict[int, dict[int, str]] = {}
tag = 0
gets = 0


def write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def say(message: Message) -> None:
    write(json.dumps(message).encode() + b"\n")


def done(request: Message) -> Message:
    """What a right queue answers."""
    global tag
    op, ch = request["op"], request.get("ch", 0)
    answer: Message = {"id": request["id"], "ok": True}
    if op == "hello":
        return answer | {"protocol": request["protocol"], "name": "hostile", "can": CAN}
    if op == "reset":
        queue.clear()
        held.clear()
    elif op == "publish":
        queue.append(request["m"])
    elif op == "get" and queue:
        tag += 1
        held.setdefault(ch, {})[tag] = queue.pop(0)
        return answer | {"m": held[ch][tag], "dtag": tag}
    elif op in ("ack", "nack"):
        m = held.get(ch, {}).pop(request["dtag"], "")
        if not m:
            return answer | {"ok": False, "why": "no such tag"}
        if op == "nack":
            queue.insert(0, m)
    elif op == "close":
        queue[:0] = held.pop(ch, {}).values()
    return answer


Hostility = Callable[[Message, Message], None]
"""Given a request and the right answer to it, in the place of saying that."""
HOSTILE: dict[str, Hostility] = {}


def late(hostility: Hostility) -> Hostility:
    """One that begins with the `AT`-th get. Its name is that of the way."""

    def at(request: Message, answer: Message) -> None:
        global gets
        gets += request["op"] == "get"
        (hostility if gets >= AT and request["op"] == "get" else right)(request, answer)

    HOSTILE[hostility.__name__.replace("_", "-")] = at
    return at


def first(hostility: Hostility) -> Hostility:
    """One of the handshake."""

    def at(request: Message, answer: Message) -> None:
        (hostility if request["op"] == "hello" else right)(request, answer)

    HOSTILE[hostility.__name__.replace("_", "-")] = at
    return at


def right(request: Message, answer: Message) -> None:
    say(answer)


# ---- no answer, or more than one


@late
def says_nothing(request: Message, answer: Message) -> None:
    time.sleep(HOUR)


@late
def answers_twice(request: Message, answer: Message) -> None:
    say(answer)
    say(answer)


@late
def answers_before_it_is_asked(request: Message, answer: Message) -> None:
    say(answer | {"id": request["id"] + 1})
    say(answer)


@late
def answers_for_another(request: Message, answer: Message) -> None:
    say(answer | {"id": request["id"] - 1})


@late
def pushes_for_another(request: Message, answer: Message) -> None:
    say({"ev": "deliver", "ch": 10**6, "ctag": "c", "m": "m0", "dtag": 1})
    say(answer)


@late
def asks_back(request: Message, answer: Message) -> None:
    say(request)


# ---- no line


@late
def half_a_line(request: Message, answer: Message) -> None:
    write(json.dumps(answer).encode()[:10])
    time.sleep(HOUR)


@late
def slow_loris(request: Message, answer: Message) -> None:
    for byte in json.dumps(answer).encode() + b"\n":
        write(bytes([byte]))
        time.sleep(0.05)


@late
def a_line_of_5_mb(request: Message, answer: Message) -> None:
    say(answer | {"why": "x" * 5 * MIB})


@late
def a_line_of_60_kb(request: Message, answer: Message) -> None:
    say(answer | {"ok": False, "why": "x" * 60_000})


@late
def lines_without_end(request: Message, answer: Message) -> None:
    while True:
        write(b"\n" * 65536)


@late
def bytes_without_end(request: Message, answer: Message) -> None:
    while True:
        write(b"\0" * 65536)


@late
def errors_without_end(request: Message, answer: Message) -> None:
    while True:
        os.write(2, (MARKED * 1000).encode("utf-8", "surrogatepass"))


@late
def deliveries_without_end(request: Message, answer: Message) -> None:
    while True:
        say({"ev": "deliver", "ch": request.get("ch", 0), "ctag": "c", "m": "m0", "dtag": 1})


# ---- no message


@late
def no_utf8(request: Message, answer: Message) -> None:
    write(b'{"id": %d, "ok": true, "m": "\xff\xfe\xc0\x80"}\n' % request["id"])


@late
def halves_of_characters(request: Message, answer: Message) -> None:
    write(b'{"id": %d, "ok": true, "m": "\\ud800\\udc00\\ud800", "dtag": 9}\n' % request["id"])


@late
def nested(request: Message, answer: Message) -> None:
    depth = 10_000
    write(
        b'{"id": %d, "ok": true, "m": "m0", "more": %s%s}\n'
        % (request["id"], b"[" * depth, b"]" * depth)
    )


@late
def nulls(request: Message, answer: Message) -> None:
    say(dict.fromkeys(("ok", "m", "dtag", "why", "batch"), None) | {"id": request["id"]})


@late
def one_name_twice(request: Message, answer: Message) -> None:
    write(b'{"id": %d, "ok": true, "id": %d, "ok": false}\n' % (request["id"], request["id"]))


@late
def a_batch_unasked(request: Message, answer: Message) -> None:
    say(answer | {"batch": [{"m": "x" * 50, "dtag": n} for n in range(1000)]})


# ---- numbers and names that nobody has


@late
def an_id_below_zero(request: Message, answer: Message) -> None:
    say(answer | {"id": -1})


@late
def an_id_beyond_all(request: Message, answer: Message) -> None:
    say(answer | {"id": 10**40})


@late
def an_id_that_is_none(request: Message, answer: Message) -> None:
    say(answer | {"id": {"id": 1}})


@late
def a_tag_below_zero(request: Message, answer: Message) -> None:
    say(answer | {"m": "m0", "dtag": -1, "redelivered": True})


@late
def a_tag_beyond_all(request: Message, answer: Message) -> None:
    say(answer | {"m": "m0", "dtag": 10**40, "pos": -(10**40), "code": 10**40})


@late
def a_number_without_end(request: Message, answer: Message) -> None:
    write(b'{"id": %d, "ok": true, "m": "m0", "dtag": 1e999}\n' % request["id"])


@late
def marked_names(request: Message, answer: Message) -> None:
    say(answer | {"m": MARKED, "dtag": 7, "redelivered": False})


@late
def marked_errors(request: Message, answer: Message) -> None:
    os.write(2, b"error: " + MARKED.encode() + b"\xff\xfe\n")
    say(answer | {"ok": False, "why": MARKED})


@late
def ends_with_marked_errors(request: Message, answer: Message) -> None:
    os.write(2, b"error: " + MARKED.encode() + b"\xff\xfe\n")
    sys.exit(1)


# ---- declarations


@first
def a_marked_name(request: Message, answer: Message) -> None:
    say(answer | {"name": MARKED, "version": MARKED})


@first
def a_name_of_60_kb(request: Message, answer: Message) -> None:
    say(answer | {"name": "n" * 30_000, "version": "v" * 30_000})


@first
def declares_all(request: Message, answer: Message) -> None:
    say(answer | {"can": WORDS, "means": {"lease": 0.01, "order": "group", "requeue": "tail"}})


@first
def declares_a_log(request: Message, answer: Message) -> None:
    say(answer | {"can": ["publish", "read", "seek", "commit", "partitions"]})


@first
def declares_without_end(request: Message, answer: Message) -> None:
    say(answer | {"can": [*CAN, *(MARKED + str(n) for n in range(1000))]})


@first
def declares_nonsense(request: Message, answer: Message) -> None:
    say(answer | {"means": {"order": MARKED, "lease": -1, MARKED: 3}})


@first
def declares_no_numbers(request: Message, answer: Message) -> None:
    write(json.dumps(answer | {"means": {"lease": "L"}}).replace('"L"', "1e999").encode() + b"\n")


def declares_anew(request: Message, answer: Message) -> None:
    """Each time it is begun it can do less, and it ends again and again."""
    global gets
    gets += request["op"] == "get"
    if request["op"] == "hello":
        path = sys.argv[2] if len(sys.argv) > 2 else "begun"
        before = os.path.getsize(path) if os.path.exists(path) else 0
        with open(path, "ab") as file:
            file.write(b"x")
        can = (CAN, ["publish", "consume"], ["publish", "read"], ["publish", "get"])[before % 4]
        say(answer | {"can": can})
    elif gets >= AT:
        sys.exit(3)
    else:
        say(answer)


HOSTILE["declares-anew"] = declares_anew


def does_nothing(request: Message, answer: Message) -> None:
    """Declares every word and refuses all but the fresh start."""
    if request["op"] == "hello":
        say(answer | {"can": WORDS})
    else:
        say(answer | {"ok": request["op"] in ("reset", "sync"), "m": ""})


HOSTILE["does-nothing"] = does_nothing


def always_slow(request: Message, answer: Message) -> None:
    """Each answer comes just in time."""
    time.sleep(0 if request["op"] == "hello" else 1.6)
    say(answer)


HOSTILE["always-slow"] = always_slow


# ---- its process


@late
def ends_well(request: Message, answer: Message) -> None:
    os._exit(0)


@late
def ends_by_a_signal(request: Message, answer: Message) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@late
def stops_itself(request: Message, answer: Message) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@late
def closes_its_output(request: Message, answer: Message) -> None:
    os.close(1)
    time.sleep(HOUR)


@late
def closes_its_input(request: Message, answer: Message) -> None:
    say(answer)
    os.close(0)
    time.sleep(HOUR)


@late
def forks_and_detaches(request: Message, answer: Message) -> None:
    """What it leaves holds its output open, is of another session, and has no environment."""
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.execve(
                sys.executable,
                [sys.executable, "-c", f"import time; time.sleep({HOUR})", *sys.argv],
                {},
            )
        os._exit(0)
    os._exit(0)


@late
def ignores_the_end(request: Message, answer: Message) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(HOUR)


@late
def signals_all_of_its_group(request: Message, answer: Message) -> None:
    os.killpg(0, signal.SIGINT)
    time.sleep(HOUR)


@late
def signals_who_began_it(request: Message, answer: Message) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(HOUR)


@late
def writes_where_it_is(request: Message, answer: Message) -> None:
    for name in ("sitecustomize.py", "json.py", "seriatim_models.py", "pyproject.toml"):
        with open(name, "w") as file:
            file.write("raise SystemExit('owned')\n")
    say(answer)


@late
def fills_memory(request: Message, answer: Message) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (300 * MIB, 300 * MIB))
    kept = []
    while True:
        kept.append(bytearray(MIB))


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in HOSTILE:
        sys.exit("\n".join(HOSTILE))
    hostility = HOSTILE[sys.argv[1]]
    for line in sys.stdin:
        asked = json.loads(line)
        hostility(asked, done(asked))
