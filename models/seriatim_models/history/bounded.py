"""Dicts that are bounded by forgetting what was put into them first."""

from __future__ import annotations

from collections import OrderedDict
from typing import ClassVar, TypeVar

K = TypeVar("K")
V = TypeVar("V")


def ordered(held: dict[K, V]) -> OrderedDict[K, V]:
    """Return the same keys and values, for `forget_oldest`.

    A plain dict looks for its first key through the holes that removed keys left before it: where thousands are kept,
    and the first is removed again and again, that takes longer than all else that an event needs.
    """
    return held if isinstance(held, OrderedDict) else OrderedDict(held)


def forget_oldest(held: dict[K, V]) -> K:
    """Remove the key that was put in first, and return it. Raises `KeyError` if there is none."""
    assert isinstance(held, OrderedDict), "see `ForgetsOldest.bounded`"
    found: tuple[K, V] = held.popitem(False)
    return found[0]


class ForgetsOldest:
    """A `msgspec.Struct` with dicts of which the oldest keys are forgotten: they are ordered when it is read, too."""

    __slots__ = ()
    bounded: ClassVar[tuple[str, ...]] = ()
    """The names of their fields."""

    def __post_init__(self) -> None:
        for name in self.bounded:
            setattr(self, name, ordered(getattr(self, name)))
