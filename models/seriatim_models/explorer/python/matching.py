"""What a pattern of `match` looks into, announced and returned: see `patterns`."""

from __future__ import annotations

from typing import Any

from seriatim_models.explorer.python.accesses import get, library
from seriatim_models.explorer.python.class_checks import is_instance
from seriatim_models.explorer.python.containers import read
from seriatim_models.explorer.python.places import INSTANCE, kind_of

SEQUENCE, MAPPING, SUBJECT_ITSELF = 1 << 5, 1 << 6, 1 << 22
"""What `type.__flags__` says of a class: Py_TPFLAGS_SEQUENCE, Py_TPFLAGS_MAPPING, and that `C(x)` means the subject."""
_ABSENT = object()


def match_sequence(subject: Any, before: int, after: int, star: bool, site: int) -> Any:
    """The items of a sequence, those between in a list of its own with `star`; `after` is -1 if none may be between."""
    if not type(subject).__flags__ & SEQUENCE:
        return None
    by_python = kind_of(type(subject)) == INSTANCE
    if not by_python:
        read(subject, site)
    if before == after == 0 and not star:  # `[*_]`
        return ()
    length = library.call(len, site, subject) if by_python else len(subject)
    if length != before if after < 0 else length < before + after:
        return None
    if before == 0 and after < 0:  # `[]`
        return ()
    if after >= 0 and not star:  # the rest is not looked at
        places = [*range(before), *range(length - after, length)]
        return tuple(subject[k] for k in places)
    items = library.call(list, site, subject) if by_python else list(subject)
    if after < 0:
        return tuple(items)
    end = len(items) - after
    return (*items[:before], items[before:end], *items[end:])


def match_mapping(subject: Any, keys: tuple[Any, ...], rest: bool, site: int) -> Any:
    """The values of these keys, and with `rest` a dict of all others."""
    if not type(subject).__flags__ & MAPPING:
        return None
    by_python = kind_of(type(subject)) == INSTANCE
    if not by_python:
        read(subject, site)
    if keys and (library.call(len, site, subject) if by_python else len(subject)) < len(keys):
        return None
    if len(set(keys)) < len(keys):
        twice = next(key for k, key in enumerate(keys) if key in keys[:k])
        raise ValueError(f"mapping pattern checks duplicate key ({twice!r})")
    values = []
    for key in keys:
        ask = get(subject, "get", site)
        value = library.call(ask, site, key, _ABSENT) if by_python else ask(key, _ABSENT)
        if value is _ABSENT:
            return None
        values.append(value)
    if rest:
        others = library.call(dict, site, subject) if by_python else dict(subject)
        for key in keys:
            del others[key]
        values.append(others)
    return tuple(values)


def match_class(subject: Any, kind: Any, positional: int, named: tuple[str, ...], site: int) -> Any:
    """The attributes that a class pattern looks at, each read by an operation of its own."""
    if not isinstance(kind, type):
        raise TypeError("called match pattern must be a class")
    if not is_instance(subject, kind):
        return None
    names: list[str] = []
    values: list[Any] = []
    if positional:
        itself = bool(kind.__flags__ & SUBJECT_ITSELF)
        allowed = get(kind, "__match_args__", site) if hasattr(kind, "__match_args__") else ()
        itself = itself and not hasattr(kind, "__match_args__")
        if type(allowed) is not tuple:
            raise TypeError(
                f"{kind.__name__}.__match_args__ must be a tuple (got {type(allowed).__name__})"
            )
        most = 1 if itself else len(allowed)
        if positional > most:
            plural = "" if most == 1 else "s"
            raise TypeError(
                f"{kind.__name__}() accepts {most} positional sub-pattern{plural} ({positional} given)"
            )
        if itself:
            values.append(subject)
        else:
            names += allowed[:positional]
    for name in (*names, *named):
        if not isinstance(name, str):
            raise TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})")
    for k, name in enumerate(every := [*names, *named]):
        if name in every[:k]:
            raise TypeError(f"{kind.__name__}() got multiple sub-patterns for attribute {name!r}")
        try:
            values.append(get(subject, name, site))
        except AttributeError:
            return None
    return tuple(values)
