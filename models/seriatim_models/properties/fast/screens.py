"""P1 to P5 over columns: each screen either *acquits*, with the readable form's exact counts, or passes.

A screen never convicts. Where it cannot rule a violation out, it gives None, and the readable form judges and tells.
So a fast verdict is the readable one, and a fast acquittal costs a few sorts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seriatim_models.properties.base import AnyProperty, Finding
from seriatim_models.properties.blackbox.conservation import Conservation, Kept, Traffic
from seriatim_models.properties.blackbox.holding import Endings
from seriatim_models.properties.blackbox.lives import ENDS, Lives, connection
from seriatim_models.properties.blackbox.strict import WINDOW
from seriatim_models.properties.fast.columns import UNKNOWN, Columns, Ints

Bools = npt.NDArray[np.bool_]
FAR = 2**62
SCREENED = frozenset({"P1", "P2", "P3", "P4", "P5"})


def _first_of_groups(sorted_keys: Ints) -> Bools:
    first = np.ones(len(sorted_keys), dtype=bool)
    first[1:] = sorted_keys[1:] != sorted_keys[:-1]
    return first


class Screen:
    """What the screens share: acquisitions by message and place, and where holders end."""

    def __init__(self, c: Columns) -> None:
        self.c = c
        a = c.acquisitions
        self.order = np.lexsort((a["pos"], a["key"]))
        self.key = a["key"][self.order]
        self.pos = a["pos"][self.order]
        self.by = a["by"][self.order]
        self.first = _first_of_groups(self.key)
        self.again = np.flatnonzero(~self.first)  # each with the acquisition before it, at one less
        s = c.settled
        at = np.lexsort((s["pos"], s["key"]))
        self.s_key, self.s_pos = s["key"][at], s["pos"][at]
        self.s_by, self.s_final = s["by"][at], s["final"][at].astype(bool)
        self.end = self._ends()
        self.kept = self._few()

    def _few(self) -> Kept:
        """The few events, as the readable form summarises them."""
        judge, kept = Conservation(), Kept(traffic=Traffic())
        for pos, event in self.c.few:
            kept.n = pos
            judge._add(kept, event)  # the fast form is the readable one's other half
            judge._traffic(kept, event)  # see above
        kept.n = self.c.n
        return kept

    def _ends(self) -> Ints:
        """By holder: the place of the first sign of its end, or far."""
        ends: dict[str, int] = {}
        for pos, e in self.c.few:
            if e.ev in ENDS:
                name = f"{e.conn}/{e.ch}#{e.gen}" if e.ev == "ch_close" else f"{e.conn}/"
                ends.setdefault(name, pos)
        names = self.c.holders.code
        out = np.full(len(names), FAR, dtype=np.int64)
        for name, code in names.items():
            out[code] = min(ends.get(name, FAR), ends.get(connection(name), FAR))
        return out

    def settled_after(self, key: Ints, pos: Ints) -> tuple[Ints, Bools]:
        """Of each (key, place): the index of the first settlement of that key after it, and whether there is one."""
        span = np.int64(self.c.n + 1)
        at = np.searchsorted(self.s_key * span + self.s_pos, key * span + pos, "right")
        there = at < len(self.s_key)
        there[there] = self.s_key[at[there]] == key[there]
        return at, there

    def judge(self, prop: AnyProperty) -> Finding | None:
        """The finding of one of `SCREENED`, in any of its forms, if it acquits."""
        if isinstance(prop, Conservation):
            return self.p1(prop.again)
        # P5 in its other form leaves out what came back at a known instant, and such a history is odd.
        screens = {"P2": self.p2, "P3": self.p3, "P4": self.p4, "P5": self.p5}
        return screens[prop.id]()

    def p1(self, again: bool = False) -> Finding | None:
        """Conservation."""
        c, kept = self.c, self.kept
        before = self.again - 1
        at, there = self.settled_after(self.key[before], self.pos[before])
        between = there.copy()
        between[there] = self.s_pos[at[there]] < self.pos[self.again][there]
        # The usual way back: given back by its holder, and nothing else. All other pairs are looked at one by one.
        plain = ~between
        plain[between] = ~self.s_final[at[between]]
        several = between & (at + 1 < len(self.s_key))
        nxt = at[several] + 1
        more = (self.s_key[nxt] == self.key[before][several]) & (
            self.s_pos[nxt] < self.pos[self.again][several]
        )
        plain[np.flatnonzero(several)[more]] = False
        odd = np.flatnonzero(~plain)
        untestable = 0
        for n in odd if not again else ():
            # A settlement for good by the holder that ended since may have died with it; else the readable form judges.
            who = self.by[before[n]]
            if self.end[who] >= self.pos[self.again[n]]:
                return None
            lo, hi = at[n], at[n]
            while (
                hi < len(self.s_key)
                and self.s_key[hi] == self.key[before[n]]
                and self.s_pos[hi] < self.pos[self.again[n]]
            ):
                hi += 1
            ours = self.s_final[lo:hi] & (self.s_by[lo:hi] == who)
            untestable += int(ours.any())
        tested = len(self.again) - untestable
        # Phantoms: every first acquisition of a life has a publish of the message before it.
        p = c.publishes
        message = np.array(c.message_of, dtype=np.int64)
        sent = np.full(len(c.messages.code), FAR, dtype=np.int64)
        whole = p["refused"] == 0
        np.minimum.at(sent, message[p["key"][whole]], p["pos"][whole])
        firsts = np.flatnonzero(self.first)
        if not whole.any():
            untestable += len(firsts)
        elif (sent[message[self.key[firsts]]] >= self.pos[firsts]).any():
            return None
        else:
            tested += len(firsts)
        # Losses: every confirmed message is settled for good after it was last acquired, or its queue was not drained.
        confirmed = np.unique(p["key"][p["ok"] == 1])
        refused = np.unique(p["key"][p["refused"] == 1])
        confirmed = np.setdiff1d(confirmed, refused)
        last = np.full(len(c.keys.code), -1, dtype=np.int64)
        np.maximum.at(last, self.key, self.pos)
        final = np.full(len(c.keys.code), -1, dtype=np.int64)
        np.maximum.at(final, self.s_key[self.s_final], self.s_pos[self.s_final])
        gone = np.zeros(len(c.messages.code), dtype=bool)
        gone[message[final > last]] = True
        safe = gone[message[confirmed]]
        if not safe.all():
            traffic = kept.traffic
            names = list(c.lanes.code)
            for table in (c.publishes, c.acquisitions, c.settled):
                for lane in np.unique(table["lane"]):
                    q = names[lane]
                    top = int(table["pos"][table["lane"] == lane].max())
                    traffic.last[q] = max(traffic.last.get(q, -1), top)
            if any(Conservation().drained(kept, q) for q in traffic.looks):
                return None
        tested += int(safe.sum())
        untestable += int((~safe).sum())
        return Finding.of("P1", tested, n_untestable=untestable)

    def p2(self) -> Finding | None:
        """One holder."""
        before = self.again - 1
        at, there = self.settled_after(self.key[before], self.pos[before])
        let_go = there.copy()
        let_go[there] = (self.s_pos[at[there]] < self.pos[self.again][there]) & (
            self.s_by[at[there]] == self.by[before][there]
        )
        let_go |= self.end[self.by[before]] < self.pos[self.again]
        let_go |= self.c.acquisitions["autoack"][self.order][before] == 1
        if not let_go.all():
            return None
        return Finding.of("P2", len(self.key))

    def p3(self) -> Finding | None:
        """The redelivered flag."""
        c = self.c
        flag = c.acquisitions["redelivered"][self.order]
        later = flag[self.again]
        if (later == 0).any():
            return None
        tested = int((later == 1).sum()) + int((flag[self.first] == 0).sum())
        untestable = int((later == -1).sum())
        odd = np.flatnonzero(self.first & (flag != 0))
        if len(odd):
            p = c.publishes
            sent = np.full(len(c.keys.code), FAR, dtype=np.int64)
            whole = p["refused"] == 0
            np.minimum.at(sent, p["key"][whole], p["pos"][whole])
            names = list(c.keys.code)
            endings = Endings(Lives(ends=self.kept.ends, cancels=self.kept.cancels))
            for n in odd:
                q, _, m = names[self.key[n]].partition("\n")
                born = int(sent[self.key[n]])
                if born == FAR:
                    unnamed = c.keys.code.get(f"\n{m}")
                    born = FAR if unnamed is None else int(sent[unnamed])
                unknown = flag[n] == -1 or born > self.pos[n]
                if not unknown and not endings.under_way(q, born, int(self.pos[n])):
                    return None
                untestable += 1
        return Finding.of("P3", tested, n_untestable=untestable)

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
