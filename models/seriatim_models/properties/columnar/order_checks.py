"""P4 and P5 over columns: each screen either *acquits*, with the readable form's exact counts, or passes.

A screen never convicts. Where it cannot rule a violation out, it gives None, and the readable form judges and tells.
So a fast verdict is the readable one, and a fast acquittal costs a few sorts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.blackbox.strict import WINDOW
from seriatim_models.properties.columnar.columns import UNKNOWN, Columns, Ints

Bools = npt.NDArray[np.bool_]
FAR = 2**62
SCREENED = frozenset({"P4", "P5"})


def _first_of_groups(sorted_keys: Ints) -> Bools:
    first = np.ones(len(sorted_keys), dtype=bool)
    first[1:] = sorted_keys[1:] != sorted_keys[:-1]
    return first


class Screen:
    """Both screens over one history's columns, which must not be odd."""

    def __init__(self, c: Columns) -> None:
        self.c = c

    def judge(self, prop: AnyProperty) -> Finding | None:
        """The finding of one of `SCREENED`, in any of its forms, if it acquits."""
        # P5 in its other form leaves out what came back at a known instant, and such a history is odd.
        return self.p4() if prop.id == "P4" else self.p5()

    def p4(self) -> Finding | None:
        """First deliveries of one publisher to one channel."""
        a = self.c.acquisitions
        line = a["line"]
        mine = np.flatnonzero(line >= 0)
        order = mine[np.lexsort((a["pos"][mine], line[mine]))]
        first = _first_of_groups(line[order])
        number = a["number"][order]
        # Within a line every number is at least the greatest before it.
        if (~first[1:] & (number[1:] < number[:-1])).any():
            return None
        return Finding.of("P4", len(order) - int(first.sum()), n_untestable=self.c.clipped)

    def p5(self) -> Finding | None:
        """Strict order."""
        c = self.c
        a, p = c.acquisitions, c.publishes
        keys = len(c.keys.code)
        born = np.full(keys, FAR, dtype=np.int64)
        begun = np.full(keys, UNKNOWN, dtype=np.int64)
        confirmed = np.full(keys, FAR, dtype=np.int64)
        whole = p["refused"] == 0
        invoke = np.flatnonzero(whole & (p["ok"] == 0))
        if len(np.unique(p["key"][invoke])) != len(invoke):
            return None  # published twice
        born[p["key"][invoke]] = p["pos"][invoke]
        begun[p["key"][invoke]] = p["lo"][invoke]
        ok = np.flatnonzero(whole & (p["ok"] == 1))
        if (born[p["key"][ok]] > p["pos"][ok]).any():
            return None  # a confirm of what nobody was seen to send
        ok = ok[::-1]
        confirmed[p["key"][ok]] = p["t"][ok]  # the first of several
        if (born[a["key"]] > a["pos"]).any():
            return None
        tested = 0
        for lane in range(len(c.lanes.code)):
            found = self._p5_lane(np.flatnonzero(a["lane"] == lane), begun, confirmed)
            if found is None:
                return None
            tested += found
        return Finding.of("P5", tested, n_untestable=len(a) - tested)

    def _p5_lane(self, rows: Ints, begun: Ints, confirmed: Ints) -> int | None:
        """Of one queue: how many acquisitions had another choice; None if one may have been wrong."""
        a = self.c.acquisitions
        key, hi, lo = a["key"][rows], a["t"][rows], a["lo"][rows]
        if (np.diff(hi) < 0).any():
            return None
        n = len(rows)
        place = np.arange(n)
        first = np.zeros(n, dtype=bool)
        _, at = np.unique(key, return_index=True)
        first[at] = True
        judged = lo != UNKNOWN
        ends = np.flatnonzero(first & judged & (a["redelivered"][rows] == 0))
        # The end of message j's availability convicts, or was a choice for, rows recorded before it whose hi is less.
        reach = np.minimum(np.searchsorted(hi, lo[ends], "left"), ends)
        # Whose message was sent after j was confirmed?
        later = np.where(judged, begun[key], UNKNOWN)
        if self._overtaken(later, ends, reach, confirmed[key[ends]]):
            return None
        stream, number = a["stream"][rows], a["number"][rows]
        for s in np.unique(stream[ends]):
            if s < 0:
                continue
            mine = np.where(judged & (stream == s), number, UNKNOWN)
            of = stream[ends] == s
            if self._overtaken(mine, ends[of], reach[of], number[ends[of]]):
                return None
        # A choice for row i: an end j after it, within the window, with confirmed < lo and hi < end.
        conf = np.full(n, FAR, dtype=np.int64)
        conf[ends] = confirmed[key[ends]]
        reaches = np.zeros(n, dtype=np.int64)
        reaches[ends] = reach
        least = np.minimum.accumulate(conf[::-1])[::-1]  # among this and all later
        active = place[judged]
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

    def _overtaken(self, later: Ints, ends: Ints, reach: Ints, least: Ints) -> bool:
        """Whether some row before `reach` is behind the end's message."""
        if not len(ends) or not len(later):
            return False
        top = np.maximum.accumulate(later)
        some = reach > 0
        return bool((top[reach[some] - 1] > least[some]).any())
