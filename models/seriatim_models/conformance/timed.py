"""Messages with a delay or a time to live, as the drive knows them.

When such a message is in its queue the clock of the system decides, which is not seen. So its publish is recorded as
under way, and its end when it is certain: of a delay when somebody has the message or it must be there for long; of a
time to live never (``info``), for what nobody took in time is gone. `P26` compares both with what is handed out.
"""

from __future__ import annotations

import msgspec

MS = 1_000_000
OLD = 120 * MS
"""Nanoseconds after its time to live until a message is looked for that must be gone: later than P26 asks."""
SHORT_LEASE = 1.0
"""Seconds of a lease that is waited for: what lasts longer is not seen to end."""
OVERDUE = 1_000 * MS
"""How long after its delay a message that is not there yet may be missing."""


class TimedPublish(msgspec.Struct, frozen=True):
    """A publish whose end is not recorded yet."""

    op: int
    fields: dict[str, object]
    answered: int
    """When, in nanoseconds of `time.monotonic_ns`."""
    delay: int | None
    ttl: int | None

    @property
    def m(self) -> str:
        """Its message."""
        return str(self.fields["m"])

    @property
    def q(self) -> str:
        """Its queue."""
        return str(self.fields["q"])

    @property
    def over(self) -> int:
        """When it must be there, or gone."""
        return self.answered + (self.delay or 0) * MS + (OLD + self.ttl * MS if self.ttl else 0)

    def ended(self, now: int) -> dict[str, object]:
        """The fields of its end."""
        return {"args": asked(self.delay, self.ttl) | {"answered": min(self.answered, now)}}


def asked(delay: int | None, ttl: int | None) -> dict[str, int]:
    """The words of a publish that say so."""
    return {name: ms for name, ms in (("delay", delay), ("ttl", ttl)) if ms}
