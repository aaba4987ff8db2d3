"""What an implementation declares that its words mean, and the profile that it is held to by that.

`can` says which words an implementation knows, `means` what they mean where systems differ. Each meaning is a promise:
it takes the place of the one that every queue is held to otherwise, and is judged itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from seriatim_models.conformance.profiles import Profile
from seriatim_models.conformance.protocol import Fault
from seriatim_models.properties.base import AnyProperty, ProfileValue

DECLARED = "declared"
"""The id of the profile that is made of an implementation's own meanings."""

VALUES: Mapping[str, tuple[str, ...]] = {
    "order": ("queue", "partition", "group", "none"),
    "requeue": ("place", "head", "tail", "anywhere"),
    "guarantee": ("exactly-once", "at-least-once"),
    "committed": ("next", "last"),
    "cancel": ("keeps", "returns"),
}
"""The values of each meaning; the first one, which is the strictest, is what an undeclared one is judged by."""
LONGEST_LEASE = 86_400 * 365
"""Seconds that a lease can have."""
ORDER = frozenset({"P4", "P5", "P6", "P20"})
"""Properties of the order of a whole queue."""


class Meanings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is declared; an empty text where nothing is."""

    order: str = ""
    """Within what messages keep their order: the queue, a partition (`part`), a group (`key`), or nothing."""
    requeue: str = ""
    """Where nack and reject put what they requeue: its place, the head, the tail, or anywhere."""
    guarantee: str = ""
    """Whether a message that was settled for good may come again (at-least-once) or not."""
    committed: str = ""
    """What the position of a commit or seek is: the next to be read, or the last that was."""
    cancel: str = ""
    """Whether the channel keeps what a cancelled consumer holds, or it returns to its queue, as by nack."""
    lease: float = 0.0
    """Seconds for which what was given is its holder's and nobody else's; 0 if it is not said."""

    def __bool__(self) -> bool:
        """Whether something is declared that takes the place of a promise; a lease is one more."""
        return any(getattr(self, name) for name in VALUES)

    def __str__(self) -> str:
        said = [f"{name} {value}" for name in VALUES if (value := getattr(self, name))]
        return ", ".join([*said, *[f"lease {self.lease:g} s"] * bool(self.lease)])


NOTHING = Meanings()


NEEDS: Mapping[tuple[str, str], frozenset[str]] = {
    ("order", "partition"): frozenset({"partitions"}),
    ("order", "group"): frozenset({"groups"}),
    **{("requeue", value): frozenset({"nack", "reject"}) for value in VALUES["requeue"]},
    **{("committed", value): frozenset({"commit"}) for value in VALUES["committed"]},
    **{("cancel", value): frozenset({"cancel"}) for value in VALUES["cancel"]},
}
"""What a meaning is one of: without any of these words it says nothing."""


def meanings(given: object, can: frozenset[str]) -> Meanings:
    """The meanings in an answer to `hello`, or in an object's `means`, of what it can do.

    Raises `Fault` that names the field.
    """
    if not isinstance(given, Mapping):
        raise Fault("start", f"means: {given!r:.80} is not a table of names and values")
    for name, value in given.items():
        if name == "lease":
            _check_lease(value, can)
            continue
        if name not in VALUES:
            raise Fault("start", f"means: {name!r:.80} is none of {', '.join(VALUES)}, lease")
        if value not in VALUES[name]:
            raise Fault(
                "start", f"means: {name}: {value!r:.80} is none of {', '.join(VALUES[name])}"
            )
        needs = NEEDS.get((name, value), can)
        if not needs & can:
            words = " or ".join(sorted(needs))
            raise Fault("start", f"means: {name}: {value} says nothing without {words} in can")
    return Meanings(**given)


def _check_lease(seconds: object, can: frozenset[str]) -> None:
    """Raises `Fault` if that is no length of a lease, or there are none."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0.001 <= seconds <= LONGEST_LEASE:  # type: ignore[operator]
        many = f"a number of seconds, 0.001 to {LONGEST_LEASE:,}"
        raise Fault("start", f"means: lease: {seconds!r:.80} is not {many}")
    if "lease" not in can:
        raise Fault("start", f"means: lease: {seconds:g} says nothing without lease in can")


def declared_profile(means: Meanings, of: Profile) -> Profile:
    """The promises of a profile, but for those that the meanings replace."""
    forms: dict[str, dict[str, ProfileValue]] = {}
    silent: set[str] = set()
    if means.order in ("partition", "group"):
        silent.add("P20")
    elif means.order == "none":
        silent |= ORDER
    if means.requeue not in ("", "place"):
        forms["P5"] = {"returned": False}
        silent |= {"P6", "P20"}
    if means.guarantee == "at-least-once":
        forms["P1"] = {"again": True}

    def form(prop: AnyProperty) -> AnyProperty:
        return prop.from_options(forms[prop.id]) if prop.id in forms else prop

    promised = tuple(form(p) for p in of.properties if p.id not in silent)
    return replace(of, id=DECLARED, title=f"what it declares: {means}", properties=promised)
