"""Small things that the reference queue says of itself, each on its own: defaults, costs, refusals."""

from __future__ import annotations

import pytest

import seriatim.queue as reference
from seriatim import handover
from seriatim.host import Cell, Threads
from seriatim_models.explorer import World, explore
from seriatim_models.machines.single_threaded_host import SingleThreadedHost
from seriatim_models.recording.queue import recorded, snapshot


class PlannedCalls(Threads):
    """Counts what is done to cells, by name of the operation."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[str] = []

    def cell(self, value, name="", *, kind="", owner=None):  # type: ignore[no-untyped-def]
        return _Counted(super().cell(value), name, self.taken)


class _Counted:
    def __init__(self, cell: Cell[object], name: str, taken: list[str]) -> None:
        self._cell, self._name, self._taken = cell, name, taken

    def __getattr__(self, operation: str) -> object:
        self._taken.append(f"{self._name} {operation}")
        return getattr(self._cell, operation)


class Client:
    """Remembers its calls."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.woken = 0

    def notify_work(self, consumer: reference.Consumer) -> None:
        self.woken += 1

    def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
        self.sent.append(entry.message.id)


def test_a_message_is_ordinary_unless_said_otherwise() -> None:
    m = reference.Message("m")
    assert (m.priority, m.key, m.group) == (4, "", ""), "AMQP's and JMS's default priority is 4"
    assert not m.immediate
    assert (m.not_before, m.expires) == (0, 0), "neither held nor ever expired"


def test_rejects_a_message_both_immediate_and_held() -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        reference.Message("m", immediate=True, not_before=1)


def test_ql4_an_append_that_nobody_disturbs_takes_three_steps() -> None:
    host = PlannedCalls()
    nodes: reference.NodeList[reference.Node] = reference.NodeList(host, "list")
    for _ in range(3):
        host.taken.clear()
        nodes.append(reference.Node(host, "list"))
        assert host.taken == [
            "list.tail get",
            "list.next compare_and_set",
            "list.tail compare_and_set",
        ]


def test_ql4_an_append_finishes_one_that_stopped_half_way() -> None:
    """No append waits for another: the thread that linked the first node was never heard of again."""
    host = SingleThreadedHost()
    entries = reference.OrderedQueueEntryList(host, "list")
    stopped = reference.QueueEntry(
        host, "list", 0, reference.Message("stopped"), reference.AVAILABLE
    )
    assert entries.head.next.compare_and_set(None, stopped)
    entries.add(reference.Message("next"), reference.AVAILABLE)
    assert [e.message.id for e in entries] == ["stopped", "next"]


def test_sp1_an_arrival_behind_everything_moves_no_pointer() -> None:
    host = SingleThreadedHost()
    queue = reference.PullQueue(host)
    consumer = queue.subscribe("A", Client())
    before = consumer.pointer.get()
    queue.set_notify_work_desired(consumer, False)
    queue.enqueue(reference.Message("m"))
    assert consumer.pointer.get() is before


def test_sp1_a_group_set_free_is_announced_and_nothing_else() -> None:
    host = SingleThreadedHost()
    queue = reference.PullQueue(recorded(host))
    holder = queue.subscribe("A", Client())
    for id, group in (("g1", "g"), ("g2", "g"), ("g3", "g"), ("other", "")):
        queue.enqueue(reference.Message(id, group=group))
    held = [queue.attempt(holder, "pull") for _ in range(2)]
    queue.set_notify_work_desired(holder, False)
    before = len(host.events)
    assert held[0] is not None
    assert held[1] is not None
    queue.dequeue(held[0], holder)
    queue.release(held[1], holder)
    rewinds = [e for e in host.events[before:] if e.ev == "ptr_cas" and e.args["cause"] == "rewind"]
    assert len(rewinds) == 2, "one for each of the group that is available"


@pytest.mark.parametrize("kind", ["pull", "push"])
@pytest.mark.parametrize("acquires", [True, False])
def test_close_is_final(kind: str, acquires: bool) -> None:
    jobs: list[object] = []
    host = recorded(SingleThreadedHost())
    pull, push = reference.PullQueue(host), reference.PushQueue(host, jobs.append)
    queue: reference.Queue = pull if kind == "pull" else push
    client, other = Client(), Client()
    closed = queue.subscribe("A", client, acquires=acquires, priority=1, credit=2)
    queue.subscribe("B", other, keys=frozenset({"x"}))
    held = queue.enqueue(reference.Message("m1"))
    if kind == "pull":
        pull.deliver_single_message(closed)
    queue.close(closed)

    def state() -> object:
        assert closed.credit is not None
        seen = (client.sent, client.woken, other.sent, other.woken, len(jobs))
        return snapshot(queue), closed.credit.get(), closed.wants_work.get(), str(seen)

    after_close = state()
    for desired in (True, False, True):
        queue.set_notify_work_desired(closed, desired)
    queue.grant(closed, 1)
    assert not queue.release(held, closed)
    assert not queue.dequeue(held, closed)
    if kind == "pull":
        assert pull.deliver_single_message(closed) is None
    else:
        assert push.deliver_to(closed, "job") is None
    queue.close(closed)
    assert state() == after_close
    queue.enqueue(reference.Message("m2", key="x"))
    assert (client.woken + len(client.sent), other.woken + len(other.sent)) == (
        (2 if kind == "pull" else 1),
        1,
    ), "the closed consumer had the first message, the other has the second"


def test_rejects_bad_arguments_and_changes_nothing() -> None:
    host = SingleThreadedHost()
    queue = reference.PullQueue(recorded(host))
    consumer = queue.subscribe("A", Client(), credit=1)
    before = len(host.events)
    for messages in (0, -5):
        with pytest.raises(reference.QueueMisuse, match="1 or more"):
            queue.grant(consumer, messages)
    with pytest.raises(reference.QueueMisuse, match="0 or more"):
        queue.subscribe("B", Client(), credit=-1)
    with pytest.raises(reference.QueueMisuse, match="has A; A cannot join"):
        queue.subscribe("A", Client())
    with pytest.raises(reference.QueueMisuse, match="has A; B cannot join"):
        queue.subscribe("B", Client(), exclusive=True)
    assert host.events[before:] == []
    queue.close(consumer)
    queue.close(queue.subscribe("A", Client(), exclusive=True))
    queue.subscribe("A", Client(), exclusive=True)
    with pytest.raises(reference.QueueMisuse, match="has A; B cannot join"):
        queue.subscribe("B", Client())


def test_a_group_is_owned_by_a_consumer_and_not_by_its_name() -> None:
    """One that closes while its thread is about to give up a group keeps it from the next of its name."""
    queue = reference.PullQueue(SingleThreadedHost())
    first = queue.subscribe("A", Client())
    held = queue.enqueue(reference.Message("g1", group="g"))
    queue.enqueue(reference.Message("g2", group="g"))
    assert queue.deliver_single_message(first) is held
    assert held.change(first.acquired, reference.DEQUEUED), "and nothing more as yet"
    queue.close(first)
    second = queue.subscribe("A", Client())
    assert queue.deliver_single_message(second) is None


def test_a_consumer_without_credit_resumes_when_it_is_granted_some() -> None:
    queue = reference.PullQueue(SingleThreadedHost())
    client = Client()
    consumer = queue.subscribe("A", client, credit=0)
    queue.enqueue(reference.Message("m"))
    queue.set_notify_work_desired(consumer, True)
    assert (consumer.wants_work.get(), client.woken) == (False, 0)
    queue.grant(consumer, 1)
    assert (consumer.wants_work.get(), client.woken) == (True, 1)


def test_what_is_delivered_is_sent_once() -> None:
    jobs: list[object] = []
    push, pull = Client(), Client()
    reference.PushQueue(SingleThreadedHost(), jobs.append).subscribe("A", push).queue.enqueue(
        reference.Message("m")
    )
    queue = reference.PullQueue(SingleThreadedHost())
    consumer = queue.subscribe("A", pull)
    queue.enqueue(reference.Message("m"))
    assert pull.woken == 1
    queue.deliver_single_message(consumer)
    assert push.sent == pull.sent == ["m"]


def test_im3_one_job_is_pending_however_often_it_is_asked_for() -> None:
    jobs: list[object] = []
    queue = reference.PushQueue(SingleThreadedHost(), jobs.append)
    for _ in range(3):
        queue.deliver_async()
    assert len(jobs) == 1


# ---- the hand-over, step by step


def connected(
    host: object,
) -> tuple[handover.Scheduler, handover.ConsumerTarget, reference.PullQueue]:
    """One connection with one session and one target, which consumes from one queue."""
    scheduler = handover.Scheduler(host)  # type: ignore[arg-type]  # a world's host is one
    session = handover.Session(handover.Connection(scheduler, "conn"), "session")
    target = handover.ConsumerTarget(session, "target")
    queue = reference.PullQueue(scheduler.host, "q")
    target.consumers = [queue.subscribe("A", target)]
    return scheduler, target, queue


def test_one_run_sends_all_there_is_and_each_later_message_brings_another_run() -> None:
    """A target that found a message is asked again: its consumer stays in Notified and is not woken meanwhile."""

    def program(world: World) -> None:
        scheduler, target, queue = connected(world.host)

        def life() -> None:
            queue.enqueue(reference.Message("m1"))
            queue.enqueue(reference.Message("m2"))
            scheduler.run_one()
            assert [e.message.id for e in target.sent] == ["m1", "m2"]
            queue.enqueue(reference.Message("m3"))
            scheduler.run_one()  # a world in which this waits for ever is not well
            assert [e.message.id for e in target.sent] == ["m1", "m2", "m3"]

        world.spawn(life, name="life")

    explored = explore(program)
    assert explored.verdict == "ok", explored.why


def test_sessions_and_their_targets_are_served_in_turn() -> None:
    """Whoever got a message goes behind the others: no session and no target is served until it is dry."""
    sent: list[str] = []

    class Target(handover.ConsumerTarget):
        def send(self, consumer: reference.Consumer, entry: reference.QueueEntry) -> None:
            sent.append(f"{self.name} {entry.message.id}")

    scheduler = handover.Scheduler(Threads())
    connection = handover.Connection(scheduler, "conn")
    one, other = (handover.Session(connection, name) for name in ("one", "other"))
    for session, name in ((one, "T1"), (one, "T2"), (other, "T3")):
        target, queue = Target(session, name), reference.PullQueue(scheduler.host, f"q-{name}")
        target.consumers = [queue.subscribe(f"on-{name}", target)]
        for id in ("m1", "m2"):
            queue.enqueue(reference.Message(id))
    scheduler.run_one()
    assert sent == ["T1 m1", "T3 m1", "T2 m1", "T3 m2", "T1 m2", "T2 m2"]


def test_an_io_thread_waits_until_there_is_a_connection_to_serve() -> None:
    def program(world: World) -> None:
        scheduler = connected(world.host)[0]
        served = 0

        def io_thread() -> None:
            nonlocal served
            while True:
                scheduler.run_one()
                served += 1

        world.spawn(io_thread, name="io", daemon=True)
        world.at_end(lambda: world.result(served))

    explored = explore(program)
    assert set(explored.outcomes) == {0}


class Refusals(list):  # type: ignore[type-arg]
    """Jobs, and how many more of them an executor refuses."""

    more = 0

    def submit(self, job: object) -> None:
        if self.more:
            self.more -= 1
            raise RuntimeError("refused")
        self.append(job)

    def run(self) -> None:
        while self:
            self.pop(0)()


def test_no_call_fails_where_a_job_is_refused() -> None:
    jobs = Refusals()
    queue = reference.PushQueue(SingleThreadedHost(), jobs.submit, "q")
    jobs.more = 1
    first = queue.subscribe("A", Client(), exclusive=True)
    queue.enqueue(reference.Message("m1"))
    queue.enqueue(reference.Message("m2"))
    jobs.more = 3
    queue.close(first)
    client = Client()
    second = queue.subscribe("B", client)
    assert list(queue.all.consumers()) == [second]
    assert not client.sent
    queue.deliver_async()
    jobs.run()
    assert client.sent == ["m1", "m2"]


def test_credit_is_restored_where_the_job_for_a_group_is_refused() -> None:
    """An attempt finds its message gone, and sets its group free, in which another one waits."""
    host, jobs, client = SingleThreadedHost(), Refusals(), Client()
    queue = reference.PushQueue(host, jobs.submit, "q")
    for message in ("m1", "m2"):
        queue.enqueue(reference.Message(message, group="g"))
    consumer = queue.subscribe("A", client, credit=1)
    found = queue.next_available(consumer)
    assert found is not None
    assert consumer.take_credit()
    queue._take(consumer, *found)
    queue.dequeue(found[0].entry, consumer)  # type: ignore[arg-type]  # an entry
    jobs.run()
    consumer.credit.set(1)  # type: ignore[union-attr]  # it has credit
    jobs.more, stale = 1, iter([found])
    look = queue.next_available
    queue.next_available = lambda consumer: next(stale, None) or look(consumer)  # type: ignore[method-assign]
    queue.deliver_to(consumer, "job")
    assert client.sent == ["m2"]


def test_rejects_no_interrupt_but_asks_again_behind_it() -> None:
    """Ctrl-C within `submit` goes on to the caller, and the next who needs a job asks again."""
    jobs = Refusals()

    def submit(job: object) -> None:
        if not jobs.more:
            jobs.more = 1
            raise KeyboardInterrupt
        jobs.append(job)

    queue = reference.PushQueue(SingleThreadedHost(), submit, "q")
    with pytest.raises(KeyboardInterrupt):
        queue.deliver_async()
    queue.deliver_async()
    assert len(jobs) == 1
