"""A queue that is obviously right: a list of messages, a few flags, and nobody else is running.

It does not deliver by itself. It takes in what a reference did, and raises `Disagreement` if that was not allowed.
So it need not know who is served first where the queue is free to choose.
What it leaves open:

- When an expired message is cleared away. Here it is simply not there any more once its time is over.
- How far a browser has looked ahead. It must be shown, in order, what was there for it all the while (`sure`),
  and may be shown what was away for a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from seriatim_models.properties.whitebox.order import amqp_0_10_level
from seriatim_workshop.machines.sequential import Disagreement


@dataclass
class Item:
    """A message in its place."""

    id: str
    place: tuple[int, int]
    key: str
    group: str
    not_before: int
    expires: int
    state: str  # DELAYED, AVAILABLE, ACQUIRED or GONE
    holder: str = ""
    sure: bool = True
    """Every browser that has not seen it yet will."""


@dataclass
class ConsumerModel:
    """A consumer."""

    name: str
    number: int
    acquires: bool
    priority: int
    keys: frozenset[str] | None
    credit: int | None
    wants: bool
    seen: tuple[int, int] = (-1, -1)
    """Place of the last message that it was given: a browser goes on behind it."""

    def ready(self) -> bool:
        """Return whether the consumer wants work and has credit."""
        return self.wants and self.credit != 0


class QueueModel:
    """The queue."""

    def __init__(self, levels: int, pulled: bool) -> None:
        self.levels = levels
        self.pulled = pulled
        """In a pull queue consumers of low priority stand back, and who has spent his credit wants no more."""
        self.now = 0
        self.items: list[Item] = []  # all there ever were, in the order of the queue
        self.clients: dict[str, ConsumerModel] = {}
        self.subscribed = 0

    # ---- looking

    def item(self, id: str) -> Item:
        """Return the message of that id."""
        return next(i for i in self.items if i.id == id)

    def expired(self, item: Item) -> bool:
        """Return whether the time of a message is over."""
        return item.expires != 0 and self.now > item.expires

    def owner(self, group: str) -> str:
        """Who holds messages of the group; '' if nobody does."""
        return next((i.holder for i in self.items if i.group == group and i.holder), "")

    def takes(self, client: ConsumerModel, item: Item) -> bool:
        """Whether this is a message for that consumer, as things are."""
        return (
            item.state == "AVAILABLE"
            and not self.expired(item)
            and (client.keys is None or item.key in client.keys)
            and (
                not client.acquires or not item.group or self.owner(item.group) in ("", client.name)
            )
        )

    def next_for(self, client: ConsumerModel) -> Item | None:
        """What an acquiring consumer gets next, if it gets anything: the first that is for it."""
        item = next((i for i in self.items if self.takes(client, i)), None)
        if item is None or not client.ready() or self.stands_back(client, item):
            return None
        return item

    def stands_back(self, client: ConsumerModel, item: Item) -> bool:
        """Whether the message is for somebody of higher priority, who wants it."""
        return self.pulled and any(
            c.acquires and c.priority > client.priority and c.wants and self.takes(c, item)
            for c in self.clients.values()
        )

    def unserved(self) -> Iterator[tuple[ConsumerModel, Item]]:
        """Ready consumers and the messages that they are owed: if nobody is about to look, somebody was forgotten."""
        for client in self.clients.values():
            if client.acquires:
                item = self.next_for(client)
                if item is not None:
                    yield client, item
            elif client.ready():
                yield from ((client, i) for i in self.owed(client))

    def owed(self, browser: ConsumerModel) -> list[Item]:
        """Return what a browser must still be shown, in order."""
        return [
            i for i in self.items if i.sure and i.place > browser.seen and self.takes(browser, i)
        ]

    # ---- what happens

    def enqueue(self, priority: int, key: str, group: str, special: str, due: int) -> Item:
        """Put a message in its place and return it; `due` is as of `QueueHarness.enqueue`."""
        id = f"m{len(self.items) + 1}"
        not_before = due if special == "delayed" else 0
        expires = due - 1 if special == "expiring" else 0
        level = amqp_0_10_level(priority, self.levels) if self.levels > 1 else 0
        place = (self.levels - 1 - level, len(self.items))
        behind = any(i.place > place for i in self.items)
        state = "DELAYED" if not_before else "AVAILABLE"
        item = Item(id, place, key, group, not_before, expires, state)
        item.sure = state == "AVAILABLE" and not behind
        self.items = sorted([*self.items, item], key=lambda i: i.place)
        return item

    def subscribe(
        self,
        acquires: bool,
        priority: int,
        keys: frozenset[str] | None,
        credit: int | None,
        exclusive: bool,
    ) -> str:
        """Add a consumer and return its name."""
        self.subscribed += 1
        name = f"C{self.subscribed}"
        wants = credit != 0
        self.clients[name] = ConsumerModel(
            name, self.subscribed, acquires, priority, keys, credit, wants
        )
        return name

    # A consumer that was closed is not among `clients` any more: whatever is called for it is without effect.

    def grant(self, consumer: str, messages: int) -> None:
        """Give a consumer credit; it wants work."""
        client = self.clients.get(consumer)
        if client is not None:
            client.wants = True
            if client.credit is not None:
                client.credit += messages

    def pause(self, consumer: str) -> None:
        """Let a consumer want no work."""
        if consumer in self.clients:
            self.clients[consumer].wants = False

    def resume(self, consumer: str) -> None:
        """Let a consumer want work; in a pull queue, if it has credit."""
        client = self.clients.get(consumer)
        if client is not None and not (self.pulled and client.credit == 0):
            client.wants = True

    def pull(self, consumer: str) -> None:
        """Do nothing, for a consumer that was closed; what others pull is reported by `delivered`."""

    def close(self, consumer: str) -> None:
        """Release what a consumer holds, and remove it."""
        if self.clients.pop(consumer, None) is not None:
            for item in self.items:
                self.release(consumer, item.id)

    def job(self) -> None:
        """Nothing by itself: what it delivers is reported by `delivered`."""

    def pass_time(self, by: int) -> None:
        """Advance the clock."""
        self.now += by

    def delivered(self, name: str, id: str) -> None:
        """The reference gave a message to a consumer."""
        client, item = self.clients[name], self.item(id)
        if not client.ready():
            raise Disagreement(f"{name} was given {id}, and has no wish or no credit")
        if client.acquires:
            due = self.next_for(client)
            if item is not due:
                raise Disagreement(f"{name} was given {id}; its next is {due and due.id}")
            item.state, item.holder, item.sure = "ACQUIRED", name, False
        else:
            before = [i.id for i in self.owed(client) if i.place < item.place]
            if not self.takes(client, item) or item.place <= client.seen or before:
                raise Disagreement(f"browser {name} was shown {id}; not yet shown: {before}")
        client.seen = item.place
        if client.credit is not None:
            client.credit -= 1
            if self.pulled and not client.credit:
                client.wants = False

    def release(self, consumer: str, entry: str) -> bool:
        """Release a message; return False, and do nothing, if the consumer does not hold it."""
        return self._settle(consumer, entry, "AVAILABLE")

    def dequeue(self, consumer: str, entry: str) -> bool:
        """Dequeue a message; return False, and do nothing, if the consumer does not hold it."""
        return self._settle(consumer, entry, "GONE")

    def _settle(self, consumer: str, entry: str, state: str) -> bool:
        item = self.item(entry)
        if item.holder != consumer:
            return False
        item.state, item.holder = state, ""
        return True

    def dropped(self, id: str) -> None:
        """Immediate, and nobody took it."""
        item = self.item(id)
        if item.state == "AVAILABLE":
            item.state = "GONE"

    def check_message_status(self) -> None:
        """Make delayed messages that are due available, and remove what has expired."""
        for item in self.items:
            if item.state == "DELAYED" and self.now >= item.not_before:
                item.state = "AVAILABLE"
            elif item.state == "AVAILABLE" and self.expired(item):
                item.state = "GONE"
