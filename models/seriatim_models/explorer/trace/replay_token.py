"""Replay tokens: one schedule, in one printable word.

``sr1.<program>.<setting>.<schedule>.<check>``: the version;
a hash of the program's name and of the operations that it did under this schedule;
the setting (real time, time-outs, spurious wake-ups);
the steps as (thread in order of creation, alternative), run lengths coded; a check sum against typing errors.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from seriatim_models.explorer.errors import BadToken

VERSION = "sr1"
STEPS_MAX = 1_000_000
"""Of a schedule that is read: many times what the explorer lets a program do, and little memory."""
TOO_LONG = f"the replay token says more than {STEPS_MAX:,} steps, which no program does"


@dataclass(frozen=True)
class Replayable:
    """What a replay token holds."""

    program: str
    """Hash of the program's name and of what it did."""
    real_time: bool
    timeouts: int
    spurious: int
    schedule: list[tuple[int, int]]


def program_hash(name: str, operations: Iterable[str]) -> str:
    """Eight hexadecimal digits for a program and the operations that it did."""
    digest = hashlib.blake2b(digest_size=4)
    digest.update(name.encode())
    for operation in operations:
        digest.update(b"\0" + operation.encode())
    return digest.hexdigest()


def write(replay: Replayable) -> str:
    """The replay token of a schedule, as text."""
    data = bytearray()
    runs: list[list[int]] = []
    for thread, alternative in replay.schedule:
        if runs and alternative == 0 and runs[-1][0] == thread and runs[-1][1] == 0:
            runs[-1][2] += 1
        else:
            runs.append([thread, alternative, 1])
    for thread, alternative, length in runs:
        # One number each: lengths where the alternative is 0, alternatives (odd numbers) where it is not.
        _number(data, thread)
        _number(data, (length - 1) * 2 if alternative == 0 else alternative * 2 + 1)
    packed = zlib.compress(bytes(data), 9)
    body = b"z" + packed if len(packed) < len(data) else b"r" + bytes(data)
    text = base64.urlsafe_b64encode(body).decode().rstrip("=")
    setting = f"{'r' if replay.real_time else 'n'}{replay.timeouts}-{replay.spurious}"
    front = f"{VERSION}.{replay.program}.{setting}.{text}"
    return f"{front}.{_sum(front)}"


def read(token: str) -> Replayable:
    """The contents of a replay token; raises `BadToken` if it cannot be read."""
    token = token.strip()
    parts = token.split(".")
    if not parts or not parts[0].startswith("sr"):
        raise BadToken(f"not a replay token: {token[:40]!r} does not begin with '{VERSION}.'")
    if parts[0] != VERSION:
        raise BadToken(f"a token of version {parts[0]!r}; this explorer reads {VERSION!r}")
    if len(parts) != 5:
        raise BadToken(
            f"a replay token has 5 parts between dots, this one has {len(parts)}: was all of it copied?"
        )
    if _sum(".".join(parts[:4])) != parts[4]:
        raise BadToken("the check sum of the replay token is wrong: was it cut or changed?")
    try:
        setting = parts[2]
        timeouts, spurious = setting[1:].split("-")
        body = base64.urlsafe_b64decode(parts[3] + "=" * (-len(parts[3]) % 4))
        data = body[1:]
        if body[:1] == b"z":
            data = unpacked(data, 4 * STEPS_MAX, TOO_LONG)
        numbers = _numbers(data)
        schedule: list[tuple[int, int]] = []
        for thread, what in zip(numbers[::2], numbers[1::2], strict=True):
            if len(schedule) + (what >> 1) > STEPS_MAX and not what & 1:
                raise BadToken(TOO_LONG)
            if what & 1:
                schedule.append((thread, what >> 1))
            else:
                schedule.extend([(thread, 0)] * ((what >> 1) + 1))
        return Replayable(parts[1], setting[0] == "r", int(timeouts), int(spurious), schedule)
    except (ValueError, IndexError, zlib.error) as error:
        raise BadToken(f"the replay token cannot be read: {error}") from error


def unpacked(packed: bytes, most: int, too_long: str) -> bytes:
    """What was packed in a token, at most so many bytes: a few thousand letters could stand for gigabytes.

    Raises `BadToken` with `too_long` for more, and `zlib.error`.
    """
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(packed, most)
    if unpacking.unconsumed_tail:
        raise BadToken(too_long)
    if not unpacking.eof:
        raise zlib.error("it is cut off")
    return data


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode()) & 0xFFFF:04x}"


def _number(data: bytearray, n: int) -> None:
    while n >= 128:
        data.append(n & 127 | 128)
        n >>= 7
    data.append(n)


def _numbers(data: bytes) -> list[int]:
    numbers: list[int] = []
    n = shift = 0
    for byte in data:
        n |= (byte & 127) << shift
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than nine bytes")
        if byte < 128:
            numbers.append(n)
            n = shift = 0
    if shift:
        raise ValueError("it ends in the middle of a number")
    return numbers
