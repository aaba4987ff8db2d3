"""Every event that is recorded, black-box and white-box, with its fields: declared here and nowhere else.

Three things come from the declarations: what reading checks (`fault`), typed access to `Event.args`
(``catalogue.sub(event)`` is a text), and the tables of `spec/HISTORY.md`
(``python -m seriatim_workshop.event_catalogue``).
Names that are not declared belong to other people and are not checked, and neither are fields that are not declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar
from typing import get_args as type_arguments

import msgspec

from seriatim_models.history.event import Event, event

T = TypeVar("T")

# --------------------------------------------------------------------------------------------------
# Declarations
# --------------------------------------------------------------------------------------------------


class Arg(Generic[T]):
    """A field of `Event.args`: ``Arg[type](name, meaning)``. Called with an event it returns that event's value."""

    def __init__(self, name: str, meaning: str) -> None:
        self.name = name
        self.meaning = meaning

    def __call__(self, e: Event) -> T:
        """The value in an event whose kind requires it."""
        return e.args[self.name]  # type: ignore[no-any-return]  # its type was checked on reading

    def get(self, e: Event, default: T) -> T:
        """The value in an event that may leave it out."""
        return e.args.get(self.name, default)  # type: ignore[no-any-return]  # as above

    @cached_property
    def type(self) -> Any:  # Any: a type as msgspec takes it, which may be a union
        """The declared type: what stands in the brackets behind `Arg`."""
        return type_arguments(self.__orig_class__)[0]  # type: ignore[attr-defined]  # set by typing's generic alias


class Choice(NamedTuple):
    """What tells two forms of an event apart: a field, and the value that it has in this form (None: any value)."""

    arg: Arg[Any]
    value: object = None

    def fits(self, e: Event) -> bool:
        """Whether the event is of this form."""
        given = e.args.get(self.arg.name)
        return given is not None if self.value is None else given == self.value


class EventKind(msgspec.Struct, frozen=True):
    """One form of an event: a name and, if it has them, the phases in which it looks like this."""

    name: str
    meaning: str
    phases: tuple[str, ...] = ()
    """Phases of this form; empty if the phase does not matter."""
    needs: tuple[Arg[Any] | str, ...] = ()
    """Required fields; a text names a field of the envelope."""
    may: tuple[Arg[Any] | str, ...] = ()
    """Fields that are read if they are there."""
    form: Choice | None = None
    unrecorded: str = ""
    """Why nothing of this repository records it, if that is so."""


Pair = Annotated[
    list[int], msgspec.Meta(min_length=2, max_length=2, description="`[major, minor]`")
]
"""A place in a queue (sub-queue, number) or in a log (segment, offset)."""
Triple = Annotated[
    list[int], msgspec.Meta(min_length=3, max_length=3, description="`[major, minor, passed]`")
]
"""A pointer: a place, and 1 if the pointer has passed it, else 0."""


class ConsumerAtRest(TypedDict):
    """A consumer in a `snapshot`."""

    pointer: Triple
    credit: int | None
    wants_work: bool


class ChannelAtRest(TypedDict):
    """A channel in a `log_rest`."""

    place: Pair
    connected: bool
    asked: bool
    listed: int
    held: int
    parked: list[Pair]


# ---- fields of several events

sub = Arg[str]("sub", "the consumer (subscription)")
place = Arg[Pair](
    "place", "in a queue: sub-queue and number, the highest priority first; in a log: segment, offset"
)  # fmt: skip

# ---- fields of the queue's events

levels = Arg[int]("levels", "how many sub-queues (levels of priority) it has; absent: 1")
queue_kind = Arg[str]("kind", "`push` or `pull`; without it only what holds for both is judged")
group = Arg[str]("group", "message group; empty or absent: none")
immediate = Arg[bool]("immediate", "to be delivered on enqueue or discarded; absent: false")
not_before = Arg[int]("not_before", "delayed until this time of `clock`; 0 or absent: not delayed")
expires = Arg[int]("expires", "may be discarded after this time of `clock`; 0 or absent: never")
list_name = Arg[str]("list", "the list; `QUEUE.All` is the list of all consumers of a queue")
node = Arg[str](
    "node", "an entry, named by its message, or a consumer's membership, named `consumer@list#number`"
)  # fmt: skip
link_behind = Arg[str]("at", "the node in front of it, as `node`; the list itself for its head")
how = Arg[str]("how", "`cas` for a compare-and-set; anything else is a violation")
old_state = Arg[str](
    "old", "state before: DELAYED, AVAILABLE, ACQUIRED, DEQUEUED or DELETED; the expected one of a failed attempt"
)  # fmt: skip
new_state = Arg[str]("new", "state after; the wanted one of a failed attempt")
ok = Arg[bool]("ok", "whether it succeeded")
old_pointer = Arg[Triple]("old", "pointer before")
new_pointer = Arg[Triple]("new", "pointer after")
cause = Arg[str]("cause", "`rewind` for a deliberate move back; another word for a move forward")
acquires = Arg[bool]("acquires", "false for a browser, which is shown messages and takes none")
keys = Arg[list[str] | None]("keys", "keys of the messages that it selects; null or absent: all")
value_wanted = Arg[bool]("value", "whether it wants messages from now on")
delta = Arg[int]("delta", "by how many messages the credit changed")
granted = Arg[int]("messages", "how many more messages the client allows")
old_list = Arg[str](
    "old", "list left: Removed (none), NonAcquiring, NotInterested, Interested or Notified"
)  # fmt: skip
new_list = Arg[str]("new", "list entered, of the same")
move_at = Arg[Literal["leave", "enter"]]("at", "whether it leaves the old or enters the new list")
walk_at = Arg[Literal["begin", "node", "end"]](
    "at", "whether the iteration begins, returns a node or ends"
)
job_at = Arg[Literal["submit", "begin", "refused"]](
    "at", "whether the job is handed over, begins to run, or was refused by the executor"
)
run_at = Arg[Literal["begin", "end"]]("at", "whether the run begins or ends")
target = Arg[str]("target", "the target, of which several consumers may be")
among = Arg[list[str]]("among", "the target's consumers at that moment")
work_set = Arg[str]("set", "the set of work: of the scheduler, a connection or a session")
work_items = Arg[list[str]](
    "items", "who waits in it now, who is next first: connections, sets of sessions, targets"
)
list_size = Arg[int]("value", "the counter after the change")
path = Arg[str]("path", "which algorithm; `shortcut` is that of an exclusive consumer")
done = Arg[bool]("done", "false if the consumer did not hold the entry")
desired = Arg[bool]("desired", "whether the consumer wants messages")
now = Arg[int]("now", "the time from now on, in the unit of `not_before` and `expires`")
entries = Arg[list[tuple[str, Pair, str, str]]](
    "entries", "what is linked and not deleted, in order: message, place, state, owner or empty"
)  # fmt: skip
waiting_below = Arg[dict[str, int]](
    "waiting", "set of work: how many wait in it, of the scheduler, a connection or a session"
)
depth_counted = Arg[int]("depth", "the queue's own counter of its messages")
groups = Arg[dict[str, str]]("groups", "group: the consumer that owns it")
group_counts = Arg[dict[str, int]](
    "group_counts", "group: how many of its messages the queue says are acquired"
)
lists = Arg[dict[str, tuple[list[str], int]]]("lists", "list: its consumers in order, its counter")
consumers = Arg[dict[str, ConsumerAtRest]]("consumers", "consumer: its state")

# ---- fields of the client's events

owner = Arg[str]("owner", "the connection whose exclusive queue it is, or empty")
exchange = Arg[str]("x", "exchange; empty for the default exchange")
tags = Arg[list[int]]("tags", "delivery tags that it settled")
order = Arg[list[int]]("order", "positions of the queue's ready messages after it, in their order")
call = Arg[int]("call", "number of the call on its channel; 0 for none")
operation = Arg[str]("op", "name of the operation")
sent = Arg[str]("at", "`sent`: the request was written")
got = Arg[int]("got", "number of the call whose reply it received")
why = Arg[str]("why", "why it failed")
frame_kind = Arg[str](
    "kind", "`deliver`, `reply`, `close` (of the channel) or `gone` (the connection)"
)
pool_key = Arg[str](
    "k", "a channel of the work pool, `connection.channel`; a pool by itself has no connection"
)
work = Arg[str]("w", "a work item; that of a delivery is called `connection.channel:tag`")
threads = Arg[int]("threads", "how many threads the pool has")
dropped = Arg[list[str]]("dropped", "work items that were discarded")
waiting_items = Arg[int]("n", "how many items wait now")
taken_items = Arg[int]("n", "how many items were taken together")
capacity = Arg[int | None]("capacity", "how many may wait; null: no limit")
raised = Arg[str]("raised", "type of the exception that the callback raised, or empty")
queues_at_rest = Arg[dict[str, list[tuple[str, int, bool]]]](
    "queues", "queue: ready messages in order, each with position and the redelivered flag"
)  # fmt: skip
unacked = Arg[dict[str, list[str]]]("unacked", "`connection.channel`: unacknowledged messages")
queued = Arg[dict[str, list[str]]]("queued", "`connection.channel`: work items that wait")
ready = Arg[list[str]]("ready", "channels whose work no runnable has taken yet")
in_progress = Arg[list[str]]("in_progress", "channels whose block is being run")
runnables = Arg[int]("runnables", "how many runnables wait for a thread or run")

# ---- fields of the log's events

tail = Arg[Pair]("tail", "where the next record is written")
segment_size = Arg[int]("segment_size", "bytes of a segment")
channel = Arg[str]("channel", "the channel of the topic")
file_before = Arg[str]("before", "the file's bytes before, each as a character")
file_after = Arg[str]("after", "those after")
set_aside = Arg[str]("aside", "what stands in the file beside it")
spoilt = Arg[bool]("spoilt", "whether a byte was changed that was written")
refused = Arg[bool]("refused", "whether it was refused as damaged")
max_attempts = Arg[int]("max_attempts", "how often a message is tried before it is parked")
body = Arg[str]("body", "the message")
unread = Arg[bool]("unread", "whether it found something to read")
attempts = Arg[int]("attempts", "how often the message has been tried")
count_waiting = Arg[int]("n", "what the channel's counter of waiting messages says")
channels = Arg[dict[str, ChannelAtRest]](
    "channels", "channel: its state; `held`: things that it keeps in memory"
)
open_files = Arg[int]("open_files", "how many files and folders are open")

# ---- fields of the fair consumer's events

slot = Arg[str]("slot", "the slot")
quantum = Arg[int]("quantum", "what a visit adds to the deficit")
weight = Arg[int]("weight", "the weight of the delivery")
deficit = Arg[int]("deficit", "the deficit at the end of the visit")
empty = Arg[bool]("empty", "whether nothing waits in the slot then")
tokens = Arg[int]("tokens", "permits left")
waiting = Arg[int]("waiting", "deliveries that wait")
settlements = Arg[list[bool]]("settlements", "of each settlement whether it was well")
expected = Arg[list[float]]("expected", "expected rates, slot by slot")
served = Arg[list[float]]("served", "measured rates, slot by slot")
tolerance = Arg[float]("tolerance", "relative error allowed")
error = Arg[str]("error", "the exception")

# ---- fields of calls

declared = Arg[bool]("declared", "whether the call declares that it may raise that here")
waits_for = Arg[str]("waits_for", "what the thread waits for, or how the explorer names its end")

# ---- fields in `args` of what clients see

depth = Arg[Any]("depth", "how many ready messages somebody saw in `q`")
held = Arg[Any]("held", "how many messages of `q` somebody saw held, not yet settled or requeued")
fault_kind = Arg[Any](
    "kind",
    "what was done: kill, restart (an orderly stop, and a start), pause, cut, half-open, delay, throttle, disk-full",
)
fault_here = Arg[Any](
    "fault",
    "no lines were lost, but a fault of that kind ended the system: what it had only in memory may be gone",
)
going_on = Arg[Any](
    "going_on",
    "put in by the reader: lines of a recorder whose beginning is missing are lost here as before",
)
lost_kinds = Arg[list[str]](
    "kinds",
    "put in by the reader: only events of these kinds may be missing here, which the header declares as unrecorded",
)
beyond = Arg[Any](
    "beyond",
    "put in by the reader: its publisher had sent more (`pseq`) than another recorder wrote down, and so this",
)
survives = Arg[Any](
    "survives",
    "kinds of faults that its confirmed messages are promised to survive; absent: none, so that no loss is a violation",
)
settled = Arg[Any](
    "settled",
    "kinds of faults after which none of its messages may come again whose settlement was answered; absent: none",
)
rest = Arg[Any](
    "rest",
    "true: every command recorded before has taken effect, and all that it set off is recorded before",
)
committed = Arg[Any](
    "committed",
    "what the position means: `last` that is done with, or `next` to be read; the header may say it",
)
pool = Arg[Any]("pool", "how many threads run the client's callbacks, if the recorder knows")
single_active = Arg[Any](
    "x-single-active-consumer", "whether only one consumer of the queue is active"
)
max_priority = Arg[Any](
    "x-max-priority", "how many priorities the queue has: higher ones are handed out first"
)
held_groups = Arg[Any](
    "groups",
    "what keys mean: `held` while one consumer has a message of a key, others get none of it",
)
requeue_end = Arg[Any](
    "requeue",
    "where nack and reject put what they requeue: `head`, or `tail`; absent: its place, or nobody knows",
)
passive = Arg[Any](
    "passive",
    "true: it was only asked whether the queue is there, which says nothing of what it is",
)
delay_ms = Arg[Any]("delay", "milliseconds after its publish for which nobody is given the message")
queue_delay_ms = Arg[Any](
    "delay", "the `delay` of every message that is published to the queue without one of its own"
)
ttl_ms = Arg[Any](
    "ttl",
    "milliseconds after its publish from which on nobody is given the message for the first time",
)
lease_ms = Arg[Any](
    "lease", "milliseconds for which what was given is its holder's: nobody else is given it sooner"
)
tick_ms = Arg[Any](
    "tick",
    "milliseconds by which a delay or a lease may be short, by the queue's clock; absent: 20",
)
answered = Arg[Any](
    "answered", "nanoseconds: when it was answered, of an end that is written down later"
)
attempts_allowed = Arg[Any](
    "max_attempts", "how often a message of the topic is tried before it is parked"
)

# --------------------------------------------------------------------------------------------------
# What clients see
# --------------------------------------------------------------------------------------------------

_CALL = ("invoke", "ok", "fail")

BLACK_BOX = (
    EventKind("publish", "A message was published; `ok` is its confirm.",
              (), ("m",), ("q", "pub", "pseq", "key", "prio", "size", "pos", "part", delay_ms, ttl_ms, answered)),
    EventKind("return", "A mandatory message came back unrouted.", may=("m", "err")),
    EventKind("deliver", "A message was pushed to a consumer.",
              (), ("m",),
              ("q", "ctag", "dtag", "redelivered", "attempt", "autoack", "pub", "pseq", "pos", "part", "t_lo", beyond)),
    EventKind("get", "A message was polled for; an `ok` without `m` found the queue empty.",
              may=("q", "m", "dtag", "redelivered", "autoack", "pub", "pseq", beyond)),
    EventKind("ack", "Deliveries were settled: done.", may=("dtag", "multiple", "m", "ms", "t_hi")),
    EventKind("nack", "Deliveries were settled: not done.",
              may=("dtag", "multiple", "requeue", "dead", "m", "ms", "t_hi")),
    EventKind("reject", "One delivery was settled: not done.", may=("dtag", "requeue", "dead", "m", "ms", "t_hi")),
    EventKind("recover", "A channel's unsettled deliveries were requeued.", may=("requeue",)),
    EventKind("expire", "A lease or a time to live ran out; `requeue` says whether the message came back.",
              may=("m", "q", "requeue")),
    EventKind("consume", "A consumer was begun.",
              may=("q", "ctag", "autoack", "exclusive", "nolocal", "cprio", attempts_allowed)),
    EventKind("cancel", "A consumer was ended.", may=("ctag",)),
    EventKind("qos", "A limit of unsettled deliveries was set.", may=("prefetch", "scope", "credit")),
    EventKind("declare", "A queue was declared.",
              may=("q", single_active, max_priority, held_groups, requeue_end, queue_delay_ms, lease_ms, tick_ms,
                   attempts_allowed, survives, settled, passive)),
    EventKind("delete", "A queue was deleted.", may=("q",)),
    EventKind("purge", "A queue was emptied.", may=("q",)),
    EventKind("conn_open", "A connection was opened.", may=("conn", pool)),
    EventKind("conn_close", "A connection was closed in order.", (), ("conn",), ("err",)),
    EventKind("conn_drop", "A connection was lost.", (), ("conn",)),
    EventKind("ch_open", "A channel was opened.", (), ("conn", "ch"), ("gen",)),
    EventKind("ch_close", "A channel was closed, by either side; `err` if by the broker, also while its client does.",
              (), ("conn", "ch"), ("gen", "err")),
    EventKind("commit", "A reader of a log stored its position.", may=("q", "part", "pos", "ctag", committed)),
    EventKind("seek", "A reader of a log was moved.", may=("q", "part", "pos", "ctag")),
    EventKind("cb_begin", "A callback of the client began.", may=("m", "dtag")),
    EventKind("cb_end", "A callback of the client ended.", may=("m", "dtag", "err")),
    EventKind("rpc", "A synchronous operation of another kind.", may=("err",)),
    EventKind("note", "Somebody looked at a queue.", may=("q", depth, held, rest)),
    EventKind("fault", "The system was disturbed (`invoke`), and has healed (`ok`).",
              ("invoke", "ok"), may=(fault_kind,)),
    EventKind("gap", "Lines of the recording were lost here, or the system ended: anything may have happened.",
              may=(fault_here, going_on, lost_kinds),
              unrecorded="put in by the reader where lines were lost; recorded only with `fault`"),
)  # fmt: skip

CLIENT_EVENTS = frozenset(kind.name for kind in BLACK_BOX) - {"gap"}
"""The kinds of events that a recorder may declare that it never writes (`unrecorded`)."""

# --------------------------------------------------------------------------------------------------
# White box: what happens inside a queue
# --------------------------------------------------------------------------------------------------

_INVOKE, _RETURN = ("invoke",), ("ok",)

QUEUE = (
    EventKind("queue", "A queue exists.", (), ("q",), (levels, queue_kind)),
    EventKind("enqueue", "The call that enqueues begins.",
              _INVOKE, ("q", "m"), ("prio", "key", group, immediate, not_before, expires)),
    EventKind("enqueue", "It returns.", _RETURN, ("m",), (place,)),
    EventKind("link", "A node was linked behind the last of its list: this is when an entry gets its place.",
              (), (list_name, node, place), (link_behind,)),
    EventKind("unlink", "A node was unlinked.", (), (list_name, node), (place, link_behind)),
    EventKind("mark", "A consumer's membership was marked as deleted.", (), (list_name, node), (place,)),
    EventKind("size", "A list's counter was changed; or a counter of that name, which counts no list, was read.",
              (), (list_name, list_size)),
    EventKind("walk", "A thread iterates over a list of consumers.",
              (), (list_name, walk_at), form=Choice(walk_at, "begin")),
    EventKind("walk", "The iteration returns a node.", (), (list_name, walk_at, node), form=Choice(walk_at, "node")),
    EventKind("walk", "The iteration ends; one that was given up has no such event.",
              (), (list_name, walk_at), form=Choice(walk_at, "end")),
    EventKind("entry_cas", "An entry's state was changed, or an attempt to change it failed.",
              (), ("m", how, old_state, new_state, sub, ok)),
    EventKind("ptr_cas", "A consumer's pointer was moved, or an attempt to move it failed.",
              (), (sub, how, old_pointer, new_pointer, cause, ok)),
    EventKind("consumer", "A consumer registers.", (), ("q", sub, acquires), (keys, "cprio", "credit", "exclusive")),
    EventKind("close", "The call that closes a consumer begins.", _INVOKE, (sub,)),
    EventKind("close", "It returns; what the consumer held is available again.", _RETURN, (sub,)),
    EventKind("wants", "A consumer's flag that it wants messages was set.", (), (sub, value_wanted)),
    EventKind("credit", "A consumer's credit was changed.", (), (sub, delta)),
    EventKind("grant", "The client allows a consumer more messages.", (), (sub, granted)),
    EventKind("work_desired", "The call by which a consumer says whether it wants messages begins.",
              _INVOKE, (sub,), (desired,)),
    EventKind("work_desired", "It returns.", _RETURN, (sub,)),
    EventKind("qcm_move", "A consumer goes from one of the manager's lists to another; recorded twice, see `at`.",
              (), (sub, old_list, new_list, move_at)),
    EventKind("notify", "A consumer is notified (woken).", (), (sub,)),
    EventKind("attempt", "A thread begins to look for an entry for a consumer.", _INVOKE, (sub,), (path,)),
    EventKind("attempt", "It returns, with `m` if it acquired that or, for a browser, showed it.",
              _RETURN, (sub,), ("m", path)),
    EventKind("pull", "A consumer that was notified asks for the next message.", _INVOKE, (sub,)),
    EventKind("pull", "It returns, with `m` if it got one.", _RETURN, (sub,), ("m",)),
    EventKind("deliver", "An acquired entry is delivered.", (), ("m", sub)),
    EventKind("browse", "A browser is shown an entry.", (), ("m", sub)),
    EventKind("release", "The call that makes an acquired entry available again begins.", _INVOKE, ("m", sub)),
    EventKind("release", "It returns.", _RETURN, ("m", sub), (done,)),
    EventKind("dequeue", "The call that ends an acquired entry begins.", _INVOKE, ("m", sub)),
    EventKind("dequeue", "It returns.", _RETURN, ("m", sub), (done,)),
    EventKind("check_status", "A pass of housekeeping over delayed and expired entries begins.", _INVOKE),
    EventKind("check_status", "It returns.", _RETURN),
    EventKind("clock", "The time changed.", (), (now,)),
    EventKind("job", "A delivery job of a push queue is handed over, begins, or is refused.", (), (job_at,)),
    EventKind("turn", "A target asks the next of its consumers to take a message.", (), (target, sub, among)),
    EventKind("work", "Who waits in a set of the hand-over has changed.", (), (work_set, work_items)),
    EventKind("send", "An entry is being written to a consumer's connection; recorded by the client's end.",
              _INVOKE, ("m", sub)),
    EventKind("send", "It was written.", _RETURN, ("m", sub)),
    EventKind("conn_notify", "A connection is notified that one of its consumers has work.", (), ("conn",)),
    EventKind("handover_rest", "What waits in the hand-over at the end of a run.", (), (waiting_below,)),
    EventKind("conn_run", "A thread runs a connection.", (), ("conn", run_at)),
    EventKind("snapshot", "The state of a queue when nothing moves any more: the properties \"at quiescence\" read it.",
              (), ("q", entries, depth_counted, groups, lists, consumers), (group_counts,)),
)  # fmt: skip

# --------------------------------------------------------------------------------------------------
# White box: a client of RabbitMQ and the server that it needs
# --------------------------------------------------------------------------------------------------

CLIENT = (
    EventKind("srv_queue", "A queue was declared, or declared again. Events of the server are recorded under its lock.",
              (), ("q", owner)),
    EventKind("srv_bind", "A queue was bound to an exchange by a routing key; `*` is any.",
              (), ("q", exchange), ("key",)),
    EventKind("srv_publish", "A message arrived.", (), ("conn", "ch", "m", exchange), ("key",)),
    EventKind("srv_route", "A message got its position in a queue.", (), ("conn", "ch", "q", "m", "pos")),
    EventKind("srv_consume", "A consumer was registered, or refused.",
              (), ("conn", "ch", "q", "ctag", ok), ("autoack", "exclusive", "nolocal", "prefetch")),
    EventKind("srv_cancel", "A consumer was removed.", (), ("conn", "ch", "ctag"), ("q",)),
    EventKind("srv_qos", "A limit for the whole channel.", (), ("conn", "ch", "prefetch")),
    EventKind("srv_push", "A message was pushed to a consumer or, without `ctag`, is the answer to a get.",
              (), ("conn", "ch", "q", "m", "pos", "dtag", "redelivered", "autoack"), ("ctag",)),
    EventKind("srv_settle", "Deliveries were settled.", (), ("conn", "ch", "dtag", "multiple", tags), ("requeue",)),
    EventKind("srv_requeue", "A delivery went back to its queue.",
              (), ("conn", "ch", "q", "m", "pos", "dtag", order)),
    EventKind("srv_open", "The server opened a channel.", (), ("conn", "ch")),
    EventKind("srv_close", "The server closed a channel.", (), ("conn", "ch")),
    EventKind("srv_gone", "A connection ended.", (), ("conn",)),
    EventKind("srv_delete", "A queue was deleted.", (), ("q",)),
    EventKind("srv_rest", "The server at the end of a run.", (), (queues_at_rest, unacked)),
    EventKind("cli_call", "A synchronous operation begins. Closing a connection is one on channel 0.",
              _INVOKE, ("conn", "ch", call), (operation,)),
    EventKind("cli_call", "Its request is sent.", ("info",), ("conn", "ch", call), (sent,)),
    EventKind("cli_call", "It returns.", _RETURN, ("conn", "ch", call, got)),
    EventKind("cli_call", "It fails.", ("fail",), ("conn", "ch", call, why)),
    EventKind("cli_frame", "The reader took a frame from the connection; `gone` ends all channels.",
              (), ("conn", "ch", frame_kind, call), ("dtag",)),
    EventKind("pool_size", "A work pool exists.", (), (threads,), ("conn",)),
    EventKind("pool_register", "A channel was registered.", (), (pool_key,)),
    EventKind("pool_unregister", "A channel was removed.", (), (pool_key, dropped)),
    EventKind("pool_put", "A work item was queued.", (), (pool_key, work, waiting_items, capacity)),
    EventKind("pool_block", "A runnable took a block of items.", (), (pool_key, taken_items)),
    EventKind("work_add", "A work item is to be added; `ok`: it will be run; `fail`: it will not be run.",
              _CALL, (pool_key, work)),
    EventKind("work_start", "A work item begins to run.", (), (pool_key, work)),
    EventKind("work_end", "A work item ended.", (), (pool_key, work), (raised,)),
    EventKind("cli_rest", "The work pool at the end of a run.", (), (ready, runnables), (queued, in_progress)),
)  # fmt: skip

# --------------------------------------------------------------------------------------------------
# White box: a log
# --------------------------------------------------------------------------------------------------

LOG = (
    EventKind("topic", "A topic was opened, perhaps again after a crash.", (), (tail, segment_size)),
    EventKind("publish", "A record of `size` bytes is to be published.", _INVOKE, ("size",)),
    EventKind("publish", "It is durable, at `place`.", _RETURN, (place,)),
    EventKind("publish", "It was refused: larger than a segment.", ("fail",)),
    EventKind("publish", "Nobody knows: the topic was closed or the disk failed.", ("info",), may=(why,)),
    EventKind("append", "A record is in the topic, which ends behind it.", (), (place, body)),
    EventKind("recovery", "A topic was opened on a file as a crash or damage left it, or refused to be.",
              (), (file_before, file_after, set_aside, spoilt, refused)),
    EventKind("channel", "A channel was opened at a place.", (), (channel, place, max_attempts), (attempts,)),
    EventKind("connect", "A consumer connected.", (), (channel,)),
    EventKind("disconnected", "It disconnected.", (), (channel,)),
    EventKind("look", "It looked for something to read.", (), (channel, unread)),
    EventKind("sleep", "It goes to sleep.", (), (channel,)),
    EventKind("woke", "It was woken.", (), (channel,)),
    EventKind("handle", "The handler is called, returns or raises.", _CALL, (channel, place, body)),
    EventKind("back_off", "The channel pauses after a failure.", (), (channel,), (attempts,)),
    EventKind("park", "A message that always fails was written to the parking file.",
              (), (channel, place), form=Choice(channel)),
    EventKind("park", "Nobody knows: the disk failed.", ("info",), (channel, place), may=(why,)),
    EventKind("struck", "A parked message was replayed and struck off.", (), (channel, place)),
    EventKind("commit", "The channel's position was stored.", (), (channel, place)),
    EventKind("waiting", "A design that counts what waits changed its counter.",
              (), (channel, count_waiting), unrecorded="by mutants only: the reference counts nothing"),
    EventKind("log_rest", "The topic at the end of a run.", (), (tail, channels), (open_files,)),
)  # fmt: skip

# --------------------------------------------------------------------------------------------------
# White box: the fair consumer
# --------------------------------------------------------------------------------------------------

FAIR = (
    EventKind("slot", "A slot exists.", (), (slot, quantum), ("prefetch",)),
    EventKind("arrive", "A delivery of this weight waits in the slot from now on.", (), (slot, weight)),
    EventKind("take", "It was taken to be served.", (), (slot, weight)),
    EventKind("visit", "A visit of a slot ends.", (), (slot, deficit, empty)),
    EventKind("round", "A round over all slots begins."),
    EventKind("park", "The loop is about to park."),
    EventKind("interrupted", "A round ended before its end: the broker took a settlement with an error."),
    EventKind("unpark", "The loop is awake."),
    EventKind("stopping", "The loop was asked to end: from now on it takes nothing."),
    EventKind("stopped", "The loop was stopped."),
    EventKind("failed", "A handler raised.", (), (error,)),
    EventKind("died", "The loop ended with an exception.", (), (error,), unrecorded="by mutants only"),
    EventKind("overrun", "A delivery beyond the slot's prefetch was refused.", (), (slot,)),
    EventKind("fair_rest", "The end of a run.", (), (tokens, waiting), (settlements,)),
    EventKind("rates", "Rates of a simulation.", (), (expected, served, tolerance)),
)  # fmt: skip

# --------------------------------------------------------------------------------------------------
# White box: calls, of any of them
# --------------------------------------------------------------------------------------------------

CALLS = (
    EventKind("raised", "A call raised an error, or one ended a thread of the system's own.",
              (), (error, declared)),
    EventKind("stuck", "A thread waits for what nobody will do, or repeats the same steps for ever.",
              (), (waits_for,), unrecorded="by mutants only, where the explorer names such an end"),
)  # fmt: skip

WHITE_BOX = {"queue": QUEUE, "client": CLIENT, "log": LOG, "fair consumer": FAIR, "calls": CALLS}

# --------------------------------------------------------------------------------------------------
# The check
# --------------------------------------------------------------------------------------------------


class _Form:
    """How events of one kind are checked."""

    def __init__(self, kind: EventKind) -> None:
        self.kind = kind
        self.envelope = tuple(f for f in kind.needs if isinstance(f, str))
        required = [f for f in kind.needs if isinstance(f, Arg)]
        optional = [f for f in kind.may if isinstance(f, Arg)]
        self.required = tuple(f.name for f in required)
        shape = {f.name: f.type for f in required}
        shape |= {f.name: NotRequired[f.type] for f in optional}
        self.args: Any = TypedDict(kind.name, shape) if shape else None  # type: ignore[operator]  # made here

    def fault(self, e: Event) -> str:
        for name in self.envelope:
            if getattr(e, name) in ("", None):
                return f"field {name}: missing from {e.ev}"
        if self.args is None:
            return ""
        try:
            msgspec.convert(e.args, self.args)
        except msgspec.ValidationError as why:
            missing = next((name for name in self.required if name not in e.args), None)
            return f"field {missing}: missing from {e.ev}" if missing else wrong_type(why)
        return ""


def _forms(kinds: Iterable[EventKind]) -> dict[str, tuple[_Form, ...]]:
    forms: dict[str, tuple[_Form, ...]] = {}
    for kind in kinds:
        forms[kind.name] = (*forms.get(kind.name, ()), _Form(kind))
    return forms


_INSIDE = _forms(kind for kinds in WHITE_BOX.values() for kind in kinds)

NAMED_BY = ("dtag", "ms", "m")
"""Of a settlement that is sent one of these says what is settled."""
SETTLEMENTS = frozenset({"ack", "nack", "reject"})
REQUIRED = {
    kind.name: tuple(f for f in kind.needs if isinstance(f, str))
    for kind in BLACK_BOX
    if kind.needs
}
"""Fields of the envelope without which a black-box event of that name says nothing."""


def nameless(e: Event) -> str:
    """What is wrong with a settlement that does not say what it settles, or with a limit without one; else empty."""
    if e.ph not in ("", "invoke"):
        return ""
    if e.dtag is None and e.ev in SETTLEMENTS and not e.ms and not e.m:
        return f"field dtag: missing from {e.ev}, and so are ms and m: nothing says what is settled"
    if e.ev == "qos" and e.prefetch is None and e.credit is None:
        return "field prefetch: missing from qos, and so is credit: there is no limit in it"
    return ""


def fault(e: Event) -> str:
    """What is wrong with an event of a declared name, beginning with the field; empty if nothing is.

    Below level ``model`` required fields of the envelope are checked, and at ``model`` all declared fields.
    A name that only black-box events have is one at level ``model`` too.
    """
    if e.lvl != "model" or e.ev not in _INSIDE:
        for name in REQUIRED.get(e.ev, ()):
            if getattr(e, name) in ("", None):
                return f"field {name}: missing from {e.ev}"
        return nameless(e)
    forms = _INSIDE[e.ev]
    phases = [p for f in forms for p in f.kind.phases]
    for form in forms:
        kind = form.kind
        if (not kind.phases or e.ph in kind.phases) and (kind.form is None or kind.form.fits(e)):
            return form.fault(e)
    if phases:
        return f"field ph: {e.ph!r} is no phase of {e.ev}, which has {', '.join(phases)}"
    return forms[0].fault(e)


def declared_event(
    i: int, t: int, proc: str, ev: str, fields: Mapping[str, object]
) -> Event | None:
    """The white-box event in what a program recorded; None if it is not declared, or not as it is declared."""
    if ev not in _INSIDE:
        return None
    made = event(i, t, proc, ev, fields, "model")
    values = {name: getattr(made, name) for name in Event.__struct_fields__}
    try:
        checked = msgspec.convert(values, Event)  # the types of the envelope
    except msgspec.ValidationError:
        return None
    return None if fault(checked) else checked


def wrong_type(why: msgspec.ValidationError) -> str:
    """A decoder's message with the field in front: ``field t: expected `int`, got `str```."""
    what, _, where = str(why).partition(" - at `$")
    what = what[:1].lower() + what[1:]
    name = where.rstrip("`").lstrip(".")
    return f"field {name}: {what}" if name else what
