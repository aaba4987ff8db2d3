"""The properties, executable over histories."""

from seriatim_models.properties.base import AnyProperty as AnyProperty
from seriatim_models.properties.base import Finding as Finding
from seriatim_models.properties.base import Property as Property
from seriatim_models.properties.base import Verdict as Verdict
from seriatim_models.properties.base import audit as audit
from seriatim_models.properties.whitebox.calls import CALLS
from seriatim_models.properties.whitebox.client import CLIENT
from seriatim_models.properties.whitebox.consumers import CONSUMERS
from seriatim_models.properties.whitebox.entries import ENTRIES, IMMEDIATE, MORE
from seriatim_models.properties.whitebox.fair import FAIR
from seriatim_models.properties.whitebox.lists import LISTS
from seriatim_models.properties.whitebox.log import LOG
from seriatim_models.properties.whitebox.order import ORDER
from seriatim_models.properties.whitebox.pointers import POINTERS
from seriatim_models.properties.whitebox.wakeups import WAKEUPS

WHITEBOX: tuple[AnyProperty, ...] = (
    *ORDER,
    *ENTRIES,
    *POINTERS,
    *IMMEDIATE,
    *WAKEUPS,
    *LISTS,
    *MORE,
    *CONSUMERS,
    *CLIENT,
    *LOG,
    *FAIR,
    *CALLS,
)
"""What is checked over what the reference queue records of itself."""

PROPERTIES: dict[str, AnyProperty] = {p.id: p for p in WHITEBOX}
