"""The right log with one mistake each, as `mistakes` has the right queue.

``seriatim conform --python seriatim_workshop.planted.log_mistakes:commits-one-too-many``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seriatim_workshop.planted.log import PlantedLog
from seriatim_workshop.planted.mistakes import Mistake, edited

SOURCE = Path(__file__).with_name("log.py")
START = "self.committed.get((ctag, partition), 0)"
STORE = "        self.committed[ctag, LogPartition(q, part)] = pos"
MOVE = "        self.positions[ch, ctag, LogPartition(q, part)] = pos"
APPEND = "        records.append(m)\n"
FORWARD = "        self.positions[reader] = pos + 1\n"
ANSWER = "        return records[pos], pos"

MISTAKES: dict[str, Mistake] = {
    "commits-one-too-many": Mistake(
        "positions", "the committed position is one too high", STORE, STORE + " + 1"),
    "commits-one-too-few": Mistake(
        "positions", "the committed position is one too low", STORE, STORE + " - 1"),
    "forgets-commits": Mistake("positions", "a commit is not stored", STORE, "        pass"),
    "keeps-the-highest-commit": Mistake(
        "positions", "a commit that goes back is ignored", STORE,
        "        before = self.committed.get((ctag, LogPartition(q, part)), 0)\n"
        + STORE.replace("= pos", "= max(before, pos)")),
    "commits-for-all-groups": Mistake(
        "positions", "groups share their commits", STORE,
        "        for key in list(self.committed):\n"
        "            if key[1] == (q, part): self.committed[key] = pos\n" + STORE),
    "commits-for-all-partitions": Mistake(
        "positions", "a commit counts for both partitions", STORE,
        "        for n in (0, 1): self.committed[ctag, LogPartition(q, n)] = pos"),
    "commits-by-itself": Mistake(
        "positions", "reading commits, before anything is done with it", FORWARD,
        FORWARD + "        self.committed[ctag, partition] = pos + 2\n"),
    "seek-skips-one": Mistake("seek", "a record is skipped after a seek", MOVE, MOVE + " + (pos > 0)"),
    "seek-is-one-short": Mistake(
        "seek", "a seek goes one back too far", MOVE, MOVE.replace("= pos", "= max(0, pos - 1)")),
    "seek-is-ignored": Mistake("seek", "a seek is confirmed and forgotten", MOVE, "        pass"),
    "seek-moves-the-other": Mistake(
        "seek", "a seek goes to the same position in the other partition", MOVE,
        MOVE.replace("LogPartition(q, part)", "LogPartition(q, 1 - part)")),
    "swaps-each-fifth": Mistake(
        "order", "each fifth record changes places with the one before it", APPEND,
        APPEND + "        if len(records) % 5 == 0: records[-2:] = records[:-3:-1]\n"),
    "newest-first": Mistake(
        "order", "a new record is put before the others", APPEND, "        records.insert(0, m)\n"),
    "loses-each-tenth": Mistake(
        "loss", "each tenth record is confirmed and its place left out", FORWARD,
        "        if pos % 10 == 9: pos += 1\n        if pos >= len(records): return None\n" + FORWARD),
    "skips-behind-others": Mistake(
        "loss", "a reader is moved on by another reader of its group", FORWARD,
        FORWARD + "        for key in list(self.positions):\n"
        "            if key[1:] == reader[1:]: self.positions[key] = pos + 1\n"),
    "reads-twice": Mistake(
        "duplication", "each seventh read does not go on", FORWARD,
        "        self.n = getattr(self, 'n', 0) + 1\n        self.positions[reader] = pos + (self.n % 7 != 0)\n"),
    "end-comes-early": Mistake(
        "loss", "the last record is read only when another one follows",
        "if pos >= len(records):", "if pos + 1 >= len(records):"),
    "partitions-mixed": Mistake(
        "order", "each sixth record goes to the other partition",
        "records = self.records.setdefault(LogPartition(q, part), [])",
        "self.n = getattr(self, 'n', 0) + 1\n"
        "        records = self.records.setdefault(LogPartition(q, part if self.n % 6 else 1 - part), [])"),
    "close-commits": Mistake(
        "positions", "a channel that closes commits what it was given",
        '        """The channel\'s readers are gone."""\n',
        "        for key, pos in self.positions.items():\n"
        "            if key[0] == ch: self.committed[key[1:]] = pos\n"),
}  # fmt: skip


right = PlantedLog


def __getattr__(name: str) -> Callable[[], PlantedLog]:
    """The factory of the log with the mistake of that name."""
    if name not in MISTAKES:
        raise AttributeError(name)

    def planted() -> PlantedLog:
        made: PlantedLog = edited(SOURCE, name, MISTAKES[name]).PlantedLog()
        return made

    return planted
