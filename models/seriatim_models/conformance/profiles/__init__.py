"""What a system promises: the properties that its recordings are judged by, in the form that it promises them.

Systems differ in two things above all: where a requeued message lands, and when.
A profile holds a system to what it documents and to nothing more.

Each profile is a file of this folder, format ``seriatim-profile/1`` (spec/HISTORY.md has it with an example):

| key | meaning |
|---|---|
| format | ``"seriatim-profile/1"`` |
| id, title | the name, and the promise in a sentence |
| core | the properties that make the system what it is: without a case of each, not enough was seen |
| needs | operations without which a driven system is not of this kind |
| [[promise]] property | a property's id |
| [[promise]] source | where the system says so: a document, a section, an address |
| [[promise]] within, returned, again, marked, joins, committed | the form of the property, see its `options` |
| [[silent]] property, why | a property that the system does not promise |
| [[silent]] polls | of P14: a poll may find nothing beside a message; of a waiting consumer nothing is allowed |

Every property of the oracle is in a profile once, promised or silent, so that none is forgotten. A property may
declare itself which profiles promise it, and why others are silent (`Property.promised_in`, `silent_elsewhere`); then
a file mentions it only to say otherwise.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from seriatim_models.files import read_text
from seriatim_models.properties import WHITEBOX
from seriatim_models.properties.base import AnyProperty, ProfileValue
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.whitebox.composites import COMPOSITES

FORMAT = "seriatim-profile/1"

ORACLE: tuple[AnyProperty, ...] = tuple(
    sorted((*BLACKBOX, *COMPOSITES), key=lambda p: int(p.id.removeprefix("P")))
)
"""Every property that systems are judged by, in its default form."""


class ProfileError(ValueError):
    """A profile file that cannot be used; names the file and the key."""


class Promise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A property that a system promises, in the form that it promises it."""

    property: str
    source: str
    within: int | float | str | None = None
    """Of P6: further deliveries, or ``"prefetch"``. Of P14: seconds."""
    returned: bool | None = None
    """Of P5: whether a requeued message has its old place."""
    again: bool | None = None
    """Of P1: whether a message may come again after it was settled."""
    marked: bool | None = None
    """Of P4: whether whatever was handed out before, seen or not, is marked so."""
    joins: bool | None = None
    """Of P10: whether who begins may become the active consumer although the one before is there still."""
    committed: str | None = None
    """Of P15: what a commit means where the recording does not say it, ``last`` or ``next``."""

    def options(self) -> dict[str, ProfileValue]:
        """The keys that choose a form and are given."""
        named = {
            "within": self.within,
            "returned": self.returned,
            "again": self.again,
            "marked": self.marked,
            "joins": self.joins,
            "committed": self.committed,
        }
        return {key: value for key, value in named.items() if value is not None}


class Silent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A property that a system does not promise, and why that is known."""

    property: str
    why: str
    polls: bool = False
    """Of P14: whether a poll at rest may find nothing although a message is there."""


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A profile as it stands in its file."""

    format: str
    id: str
    title: str
    promise: list[Promise]
    core: list[str] | None = None
    """Of the promises, those that make the system what it is; None: all of them."""
    silent: list[Silent] = []
    needs: list[str] = []


@dataclass(frozen=True)
class Profile:
    """A named promise."""

    id: str
    title: str
    properties: tuple[AnyProperty, ...]
    promises: tuple[Promise, ...] = ()
    silent: tuple[Silent, ...] = ()
    core: frozenset[str] = frozenset()
    """Properties of which a recording must have a case before it is called consistent with the profile."""
    needs: frozenset[str] = frozenset()
    """Operations that a driven system must offer to be of this kind."""


_DEFAULT = {p.id: p for p in ORACLE}


@cache
def _made(promise: Promise) -> AnyProperty:
    """One object for one form, so that profiles that share a form are judged once."""
    default = _DEFAULT[promise.property]
    if not promise.options():
        return default
    made = default.from_options(promise.options())
    return default if (type(made), vars(made)) == (type(default), vars(default)) else made


def parse(text: str, where: str) -> Profile:
    """A profile from the text of its file. Raises `ProfileError` naming `where` and the key."""
    try:
        file = msgspec.convert(tomllib.loads(text), File)
    except (
        ValueError,
        RecursionError,
    ) as error:  # of TOML, and of numbers too long or nested too deep for it
        raise ProfileError(f"{where}: {error}") from error
    if file.format != FORMAT:
        raise ProfileError(f"{where}: format: {file.format!r} cannot be read; known is {FORMAT}")
    seen: set[str] = set()
    for id in [*(p.property for p in file.promise), *(s.property for s in file.silent)]:
        if id not in _DEFAULT:
            raise ProfileError(f"{where}: property: there is no {id}")
        if id in seen:
            raise ProfileError(f"{where}: property: {id} stands twice")
        seen.add(id)
    left = [p for id, p in _DEFAULT.items() if id not in seen]
    promises = [*file.promise, *_promised_by_default(file.id, left)]
    missing = [p.id for p in left if file.id not in p.promised_in and not p.silent_elsewhere]
    if missing:
        raise ProfileError(f"{where}: {', '.join(missing)}: neither promised nor silent")
    unpromised = [p for p in left if file.id not in p.promised_in]
    silent = [*file.silent, *(Silent(p.id, p.silent_elsewhere) for p in unpromised)]
    judges = _judges(promises, where)
    ordered = tuple(judges[id] for id in _DEFAULT if id in judges)
    core = frozenset(judges if file.core is None else file.core)
    if wrong := sorted(core - judges.keys()):
        raise ProfileError(f"{where}: core: {', '.join(wrong)} is not promised")
    needs = frozenset(file.needs)
    return Profile(file.id, file.title, ordered, tuple(promises), tuple(silent), core, needs)


def _promised_by_default(profile: str, properties: Iterable[AnyProperty]) -> list[Promise]:
    """The promises of a profile that properties declare themselves."""
    return [Promise(p.id, p.promised_in[profile]) for p in properties if profile in p.promised_in]


def _judges(promises: Iterable[Promise], where: str) -> dict[str, AnyProperty]:
    """Each promised property in its form, by id. Raises `ProfileError`."""
    judges = {}
    for promise in promises:
        for key in promise.options():
            if key not in _DEFAULT[promise.property].options:
                raise ProfileError(f"{where}: {promise.property}: has no form {key}")
        try:
            # Two promises that differ in their source alone are the same form.
            judges[promise.property] = _made(msgspec.structs.replace(promise, source=""))
        except ValueError as error:
            raise ProfileError(f"{where}: {promise.property}: {error}") from error
    return judges


def load(path: str | Path) -> Profile:
    """A profile from a file of one's own. Raises `ProfileError`."""
    return parse(read_text(Path(path), ProfileError), str(path))


def _shipped() -> Iterable[Traversable]:
    return sorted(
        (f for f in files(__name__).iterdir() if f.name.endswith(".toml")), key=lambda f: f.name
    )


_OWN = {
    profile.id: profile
    for profile in (parse(file.read_text(encoding="utf-8"), file.name) for file in _shipped())
}

PROFILES: dict[str, Profile] = {
    "any": Profile("any", "everything that a recording can show", ORACLE),
    **_OWN,
    "reference": Profile(
        "reference",
        "what the reference, or another white box, records of itself: events of level model",
        WHITEBOX,
    ),
}
"""The promises of systems, and two collections: ``any`` and ``reference``."""

SYSTEMS: dict[str, Profile] = _OWN
"""The profiles that a recording is compared with: what systems promise."""
