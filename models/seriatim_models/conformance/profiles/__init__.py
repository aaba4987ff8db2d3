"""What a system promises: the properties that its recordings are judged by, in the form that it promises them.

Systems differ in two things above all: where a message that is given back lands, and when.
A profile holds a system to its own word and to nothing more.

Each profile is a file of this folder, format ``seriatim-profile/1`` (spec/HISTORY.md has it with an example):

| key | meaning |
|---|---|
| format | ``"seriatim-profile/1"`` |
| id, title | the name, and the promise in a sentence |
| [[promise]] property | a property's id |
| [[promise]] source | where the system says so: a document, a section, an address |
| [[promise]] within, returned, again | the form of the property, see `FORMS` |
| [[silent]] property, why | a property that the system does not promise |

Every property of the oracle is in a profile once, promised or silent, so that none is forgotten.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from seriatim_models.properties import WHITEBOX
from seriatim_models.properties.base import AnyProperty
from seriatim_models.properties.blackbox import BLACKBOX
from seriatim_models.properties.blackbox.conservation import Conservation
from seriatim_models.properties.blackbox.consumers import NoLostWakeup
from seriatim_models.properties.blackbox.requeue import RequeueLateness
from seriatim_models.properties.blackbox.strict import StrictOrder
from seriatim_models.properties.whitebox.composites import INSIDE

FORMAT = "seriatim-profile/1"

ORACLE: tuple[AnyProperty, ...] = tuple(
    sorted((*BLACKBOX, *INSIDE), key=lambda p: int(p.id.removeprefix("P")))
)
"""P1 to P20 in their default forms."""


class ProfileError(ValueError):
    """A profile file that cannot be used; names the file and the key."""


class Promise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A property that a system promises, in the form that it promises it."""

    property: str
    source: str
    within: int | float | str | None = None
    """Of P6: further deliveries, or ``"prefetch"``. Of P14: seconds."""
    returned: bool | None = None
    """Of P5: whether a message that was given back has its old place."""
    again: bool | None = None
    """Of P1: whether a message may come again after it was settled."""


class Silent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A property that a system does not promise, and why that is known."""

    property: str
    why: str


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A profile as it stands in its file."""

    format: str
    id: str
    title: str
    promise: list[Promise]
    silent: list[Silent] = []


@dataclass(frozen=True)
class Profile:
    """A named promise."""

    id: str
    title: str
    properties: tuple[AnyProperty, ...]
    promises: tuple[Promise, ...] = ()
    silent: tuple[Silent, ...] = ()


def _p1(promise: Promise) -> AnyProperty:
    return Conservation(again=bool(promise.again))


def _p5(promise: Promise) -> AnyProperty:
    return StrictOrder(returned=promise.returned is not False)


def _p6(promise: Promise) -> AnyProperty:
    if promise.within in (None, "prefetch"):
        return RequeueLateness()
    if isinstance(promise.within, int) and promise.within >= 0:
        return RequeueLateness(within=promise.within)
    raise ValueError(f"within: {promise.within!r} is neither a number of deliveries nor 'prefetch'")


def _p14(promise: Promise) -> AnyProperty:
    if promise.within is None:
        return NoLostWakeup()
    if isinstance(promise.within, int | float) and promise.within > 0:
        return NoLostWakeup(within=int(promise.within * 1_000_000_000))
    raise ValueError(f"within: {promise.within!r} is no number of seconds")


FORMS: Mapping[str, tuple[frozenset[str], Callable[[Promise], AnyProperty]]] = {
    "P1": (frozenset({"again"}), _p1),
    "P5": (frozenset({"returned"}), _p5),
    "P6": (frozenset({"within"}), _p6),
    "P14": (frozenset({"within"}), _p14),
}
"""The properties that have more than one form: the keys that choose it, and what makes it."""

_DEFAULT = {p.id: p for p in ORACLE}


@cache
def _made(promise: Promise) -> AnyProperty:
    """One object for one form, so that profiles that share a form are judged once."""
    default = _DEFAULT[promise.property]
    if promise.property not in FORMS:
        return default
    made = FORMS[promise.property][1](promise)
    return default if vars(made) == vars(default) else made


def _form(promise: Promise) -> Promise:
    """A promise without its source: two that differ in that alone are the same form."""
    return Promise(promise.property, "", promise.within, promise.returned, promise.again)


def parse(text: str, where: str) -> Profile:
    """A profile from the text of its file. Raises `ProfileError` naming `where` and the key."""
    try:
        file = msgspec.convert(tomllib.loads(text), File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
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
    missing = [id for id in _DEFAULT if id not in seen]
    if missing:
        raise ProfileError(f"{where}: {', '.join(missing)}: neither promised nor silent")
    judges = {}
    for promise in file.promise:
        allowed = FORMS[promise.property][0] if promise.property in FORMS else frozenset[str]()
        for key in ("within", "returned", "again"):
            if getattr(promise, key) is not None and key not in allowed:
                raise ProfileError(f"{where}: {promise.property}: has no form {key}")
        try:
            judges[promise.property] = _made(_form(promise))
        except ValueError as error:
            raise ProfileError(f"{where}: {promise.property}: {error}") from error
    ordered = tuple(judges[id] for id in _DEFAULT if id in judges)
    return Profile(file.id, file.title, ordered, tuple(file.promise), tuple(file.silent))


def load(path: str | Path) -> Profile:
    """A profile from a file of one's own. Raises `ProfileError`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path}: cannot be read: {error}") from error
    return parse(text, str(path))


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
