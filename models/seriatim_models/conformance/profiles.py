"""What a system promises: the properties that its histories are judged by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """A named set of properties. `properties` is None for every property that can be read from the outside."""

    id: str
    title: str
    properties: tuple[str, ...] | None


PROFILES = {
    profile.id: profile
    for profile in (Profile("any", "every property that a recording can show", None),)
}
