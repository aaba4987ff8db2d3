"""The tables of events in `spec/HISTORY.md`, from the catalogue itself.

python -m seriatim_workshop.event_catalogue spec/HISTORY.md     # bring the file up to date
python -m seriatim_workshop.event_catalogue --check FILE        # exit 1 if it is not
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from seriatim_models.history.catalogue import BLACK_BOX, WHITE_BOX, Arg, EventKind
from seriatim_workshop import page_tables

BEGIN, END = "<!-- catalogue:", "<!-- end of catalogue -->"
WORDS = {str: "text", int: "int", bool: "bool", float: "number", Any: "any"}


def type_text(kind: Any) -> str:  # Any: a type as the catalogue declares it
    """The type of a field in words."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in WORDS:
        return WORDS[kind]
    if origin is Annotated:
        return str(kind.__metadata__[0].description)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if origin is UnionType:
        return " or ".join("null" if t is NoneType else type_text(t) for t in inner)
    if origin is list:
        return f"list of {type_text(inner[0])}"
    if origin is tuple:
        return f"[{', '.join(map(type_text, inner))}]"
    if origin is dict:
        return f"map of text to {type_text(inner[1])}"
    if is_typeddict(kind):
        fields = get_type_hints(kind, include_extras=True).items()
        return f"{{{', '.join(f'{name}: {type_text(t)}' for name, t in fields)}}}"
    raise TypeError(f"no words for {kind}")


def _names(fields: Iterable[Arg[Any] | str]) -> str:
    """Fields of the envelope as they are, those of `args` in code."""
    return ", ".join(f if isinstance(f, str) else f"`{f.name}`" for f in fields)


def events_table(kinds: Iterable[EventKind]) -> Iterator[str]:
    """The lines of a table with one row for each form of an event."""
    yield "| event | phases | required | optional | meaning |"
    yield "|---|---|---|---|---|"
    for k in kinds:
        form = ""
        if k.form is not None:
            value = "" if k.form.value is None else f" {k.form.value}"
            form = f" (`{k.form.arg.name}`{value})"
        meaning = k.meaning + (
            f" Recorded {k.unrecorded}." if k.unrecorded.startswith("by ") else ""
        )
        cells = [k.name + form, ", ".join(k.phases), _names(k.needs), _names(k.may), meaning]
        yield f"| {' | '.join(cells)} |"


def fields_table(kinds: Iterable[EventKind]) -> Iterator[str]:
    """The lines of a table with one row for each field of `args` of these events."""
    yield "| field | of | type | meaning |"
    yield "|---|---|---|---|"
    users: dict[Arg[Any], list[str]] = {}
    for k in kinds:
        for field in (*k.needs, *k.may):
            if isinstance(field, Arg) and k.name not in users.setdefault(field, []):
                users[field].append(k.name)
    for field, events in users.items():
        yield f"| `{field.name}` | {', '.join(events)} | {type_text(field.type)} | {field.meaning} |"


def tables() -> str:
    """All tables, each under its heading."""
    lines = ["### What clients see", "", *events_table(BLACK_BOX), "", *fields_table(BLACK_BOX)]
    for system, kinds in WHITE_BOX.items():
        lines += ["", f"### Inside: {system}", "", *events_table(kinds), "", *fields_table(kinds)]
    return "\n".join(lines)


def renewed(text: str) -> str:
    """Return the page's text with its tables made anew."""
    return page_tables.replaced(text, BEGIN, END, tables())


if __name__ == "__main__":
    sys.exit(
        page_tables.main(
            "python -m seriatim_workshop.event_catalogue",
            "Write the tables of spec/HISTORY.md from the catalogue of events.",
            renewed,
            sys.argv[1:],
        )
    )
