"""P4 and P5 over columns: each check either clears a history, with the row-based form's exact counts, or leaves it.

A check never reports a violation. Where it cannot rule one out, it gives None, and the row-based form judges.
So its verdict is that of the row-based form, for the price of a few sorts.
The history must be regular (`Columns.irregular` is empty).
"""

from __future__ import annotations

import numpy as np

from seriatim_models.properties.base import Finding
from seriatim_models.properties.blackbox.strict import WINDOW
from seriatim_models.properties.columnar.columns import UNKNOWN, Bools, Columns, Ints

FAR = 2**62
"""Later than every time and place that there is."""


def _first_of_groups(sorted_keys: Ints) -> Bools:
    """Where another key begins than that of the row before."""
    first = np.ones(len(sorted_keys), dtype=bool)
    first[1:] = sorted_keys[1:] != sorted_keys[:-1]
    return first


def first_delivery_order(c: Columns) -> Finding | None:
    """P4: first deliveries of one publisher to one channel."""
    a = c.acquisitions
    line = a["line"]
    # The rows of first deliveries whose line is known, sorted by line and within a line by place.
    mine = np.flatnonzero(line >= 0)
    order = mine[np.lexsort((a["pos"][mine], line[mine]))]
    # In that order: whether a line begins, and the publisher's number. Within a line no number may fall.
    first = _first_of_groups(line[order])
    number = a["number"][order]
    if (~first[1:] & (number[1:] < number[:-1])).any():
        return None
    return Finding.of("P4", len(order) - int(first.sum()), n_untestable=c.clipped)


def strict_order(c: Columns) -> Finding | None:
    """P5, in either form: the other one leaves out what came back at a known instant, and that is irregular."""
    a = c.acquisitions
    bounds = _publish_bounds(c)
    if bounds is None:
        return None
    begun, confirmed = bounds
    tested = 0
    for queue in range(len(c.queues)):
        cases = _strict_order_of_queue(
            c, np.flatnonzero(a["queue"] == queue), begun=begun, confirmed=confirmed
        )
        if cases is None:
            return None
        tested += cases
    return Finding.of("P5", tested, n_untestable=len(a) - tested)


def _publish_bounds(c: Columns) -> tuple[Ints, Ints] | None:
    """By message: when its publish began at the earliest, and when it was confirmed; None if that is not regular."""
    a, p = c.acquisitions, c.publishes
    # One element a message: the place of its publish, and the two bounds.
    born = np.full(len(c.keys), FAR, dtype=np.int64)
    begun = np.full(len(c.keys), UNKNOWN, dtype=np.int64)
    confirmed = np.full(len(c.keys), FAR, dtype=np.int64)
    accepted = p["refused"] == 0
    invoke = np.flatnonzero(accepted & (p["ok"] == 0))
    if len(np.unique(p["key"][invoke])) != len(invoke):
        return None  # published twice
    born[p["key"][invoke]] = p["pos"][invoke]
    begun[p["key"][invoke]] = p["lo"][invoke]
    ok = np.flatnonzero(accepted & (p["ok"] == 1))
    if (born[p["key"][ok]] > p["pos"][ok]).any():
        return None  # a confirm of what nobody was seen to send
    ok = ok[::-1]
    confirmed[p["key"][ok]] = p["t"][ok]  # the first of several
    if (born[a["key"]] > a["pos"]).any():
        return None  # acquired before it was sent
    for name in ("stream", "number"):
        sent = np.full(len(c.keys), UNKNOWN, dtype=np.int64)
        sent[p["key"][invoke]] = p[name][invoke]
        if (sent[a["key"]] != a[name]).any():
            return None  # of another publish of its name
    return begun, confirmed


def _strict_order_of_queue(c: Columns, rows: Ints, *, begun: Ints, confirmed: Ints) -> int | None:
    """Of the acquisitions of one queue: how many had another choice; None if one may have been wrong."""
    a = c.acquisitions
    key, hi, lo = a["key"][rows], a["t"][rows], a["lo"][rows]
    if (np.diff(hi) < 0).any():
        return None
    first = np.zeros(len(rows), dtype=bool)
    _, at = np.unique(key, return_index=True)
    first[at] = True
    # Only those whose earliest instant is known are judged, and have a place in the window.
    judged = lo != UNKNOWN
    rows, key, hi, lo, first = rows[judged], key[judged], hi[judged], lo[judged], first[judged]
    # The rows that end the availability of a message that was never handed out before.
    ends = np.flatnonzero(first & (a["redelivered"][rows] == 0))
    # Of each end: the rows before this number were recorded while its message was still available.
    reach = np.minimum(np.searchsorted(hi, lo[ends], "left"), ends)
    # Was a message taken there that was sent only after the end's message was confirmed?
    if _overtaken(begun[key], ends, reach, confirmed[key[ends]]):
        return None
    # Was a later message of the same publisher taken there?
    stream, number = a["stream"][rows], a["number"][rows]
    for s in np.unique(stream[ends]):
        if s < 0:
            continue
        mine = np.where(stream == s, number, UNKNOWN)
        of = stream[ends] == s
        if _overtaken(mine, ends[of], reach[of], number[ends[of]]):
            return None
    return _choices(confirmed[key], lo, ends, reach)


def _choices(confirmed: Ints, lo: Ints, ends: Ints, reach: Ints) -> int:
    """How many of the rows had another message to choose: one that ends after it, within the window."""
    n = len(lo)
    # Of each row that is an end: when its message was confirmed, and how far back it was available. Else out of reach.
    conf = np.full(n, FAR, dtype=np.int64)
    conf[ends] = confirmed[ends]
    reaches = np.zeros(n, dtype=np.int64)
    reaches[ends] = reach
    # The earliest of these confirmations among each row and all later ones: where it is too late the search ends.
    least = np.minimum.accumulate(conf[::-1])[::-1]
    # The rows for which no choice was found yet. Each round compares them with the row `ahead` of them.
    active = np.arange(n)
    chosen = 0
    for ahead in range(1, WINDOW + 1):
        active = active[active + ahead < n]
        active = active[least[active + ahead] < lo[active]]
        if not len(active):
            break
        j = active + ahead
        yes = (reaches[j] > active) & (conf[j] < lo[active])
        chosen += int(yes.sum())
        active = active[~yes]
    return chosen


def _overtaken(later: Ints, ends: Ints, reach: Ints, least: Ints) -> bool:
    """Whether a row before some end's `reach` has a `later` that is beyond the end's `least`."""
    if not len(ends) or not len(later):
        return False
    top = np.maximum.accumulate(later)
    some = reach > 0
    return bool((top[reach[some] - 1] > least[some]).any())
