"""Closed programs over the client's work pool by itself."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from seriatim.host import Semaphore
from seriatim.workpool import WorkService
from seriatim_models.programs.base import Programs
from seriatim_models.programs.client_scene import ClientScene

WORKPOOL_PROGRAMS = Programs("client")
scenario = WORKPOOL_PROGRAMS.scenarios(ClientScene)


@scenario("CH-1 CH-2 CH-3 CH-4 CH-6", traces=12, threads=2)
def pool_one_channel(scene: ClientScene) -> None:
    """One channel's work arrives while two threads run it, one item at a time.

    Bounds: Two items, two threads. More items repeat the second one.
    """
    scene.pooled(scene.service(block=1), {"a": 2})


@scenario("CH-1 CH-2 CH-3 CH-4 CH-6", traces=22)
def pool_two_channels(scene: ClientScene) -> None:
    """Two channels' work arrives while one thread runs it in blocks.

    Bounds: Two items for one channel, one for the other, one thread. With one thread no two callbacks can overlap;
    that is `pool-one-channel`.
    """
    scene.pooled(scene.service(), {"a": 2, "b": 1})


@scenario("CH-1 CH-2 CH-4", traces=10)
def pool_raises(scene: ClientScene) -> None:
    """The first callback of a block raises.

    Bounds: Three items of one channel, one thread; the block holds from one to three of them. Two channels, both of
    which raise, are not here.
    """
    service = scene.service()
    service.pool.register_key("a")

    def spoilt() -> None:
        raise RuntimeError("the callback's own fault")

    def add() -> None:
        service.add("a", scene.work("a:1", spoilt))
        service.add("a", scene.work("a:2"))
        service.add("a", scene.work("a:3"))

    scene.spawn(add, "reader")


@scenario("CH-1 CH-3 CH-4", traces=56, threads=2)
def pool_together(scene: ClientScene) -> None:
    """The callbacks of two channels wait for each other, on two threads.

    Bounds: Two channels, two threads; one channel has a second item. With k of each it is the same k times.
    """
    service = scene.service()
    here, there = scene.world.semaphore(0, "a is here"), scene.world.semaphore(0, "b is here")

    def meet_b() -> None:
        here.release()
        there.acquire()

    def meet_a() -> None:
        there.release()
        here.acquire()

    service.pool.register_key("a")
    service.pool.register_key("b")

    def add() -> None:
        service.add("a", scene.work("a:1", meet_b))
        service.add("a", scene.work("a:2"))
        service.add("b", scene.work("b:1", meet_a))

    scene.spawn(add, "reader")


@scenario("CH-1 CH-2 CH-4 CH-5 CH-6", traces=20)
def pool_bounded(scene: ClientScene) -> None:
    """A reader waits for room while a thread makes some.

    Bounds: Three items, room for one, one thread. A second reader does not wait for room: a connection has one.
    """
    scene.pooled(scene.service(capacity=1), {"a": 3})


@scenario("CH-1 CH-2 CH-4 CH-5 CH-6", traces=32)
def pool_woken_in_vain(scene: ClientScene) -> None:
    """A reader that waits for room wakes without a notification.

    Bounds: Two items, room for one, one thread, one such moment.
    """
    service = scene.service(capacity=1)
    scene.pooled(service, {"a": 2})
    scene.wake_in_vain(service.pool._lock, service.pool._room)


@scenario("CH-4 CH-5", traces=20)
def pool_unlimited_again(scene: ClientScene) -> None:
    """A channel with a call out is closed while a reader fills another channel.

    Bounds: Two channels, three items, room for one, one thread. The channel closes before the reader begins; a
    close meanwhile is `pool-unregister`.
    """
    service = scene.service(capacity=1)
    service.pool.register_key("b")
    service.pool.unlimit("b")
    service.pool.unregister_key("b")
    scene.pooled(service, {"a": 3})


@scenario("CH-1 CH-4", traces=143)
def pool_unregister(scene: ClientScene) -> None:
    """A channel is unregistered while a reader may wait for room in it.

    Bounds: Three items, room for one, one thread, one unregistration. It is not registered anew, as numbers of
    channels are not used twice.
    """
    service = scene.service(capacity=1)
    scene.pooled(service, {"a": 3})
    scene.spawn(lambda: service.pool.unregister_key("a"), "closer")


@scenario("CH-1 CH-2 CH-4", traces=70, threads=2)
def pool_registered_anew(scene: ClientScene) -> None:
    """A channel is unregistered and registered anew, and gets work, while a callback of its first life may run.

    Bounds: Two items, two threads; the channel goes and comes once. A client uses no number of a channel twice.
    """
    service = scene.service()
    inside = scene.world.cell(0, name="inside a")

    def enter_and_leave() -> None:
        inside.get_and_add(1)
        inside.get_and_add(-1)

    service.pool.register_key("a")
    service.add("a", scene.work("a:1", enter_and_leave))

    def anew() -> None:
        service.pool.unregister_key("a")
        service.pool.register_key("a")
        service.add("a", scene.work("a:2", enter_and_leave))

    scene.spawn(anew, "closer")


@scenario("CH-1 CH-2 CH-4", traces=19)
def pool_two_blocks(scene: ClientScene) -> None:
    """A channel with more work than a runnable takes is unregistered and registered anew, and gets work.

    Bounds: Blocks of one item, two items before and one after, one thread; the channel goes and comes once, perhaps
    between two blocks.
    """
    service = scene.service(block=1)
    service.pool.register_key("a")
    for label in ("a:1", "a:2"):
        service.add("a", scene.work(label))

    def anew() -> None:
        service.pool.unregister_key("a")
        service.pool.register_key("a")
        service.add("a", scene.work("a:3"))

    scene.spawn(anew, "closer")


@scenario("CH-1 CH-4", traces=30)
def pool_unregister_one(scene: ClientScene) -> None:
    """A channel that is ready is unregistered while another has work.

    Bounds: Two channels with one item each, one thread, one unregistration. The other channel stays; all at once is
    the end of a connection.
    """
    service = scene.service()
    scene.pooled(service, {"a": 1, "b": 1})
    scene.spawn(lambda: service.pool.unregister_key("a"), "closer")


@scenario("CH-2 CH-4", traces=425)
def pool_interrupt(scene: ClientScene) -> None:
    """A reader that may wait for room is interrupted.

    Bounds: Three items, room for one, one thread, one interrupt. What the connection does then is
    `interrupted-while-full`.
    """
    service = scene.service(capacity=1)
    scene.pooled(service, {"a": 3})
    scene.spawn(service.pool.interrupt, "interrupter")


@scenario("CH-1 CH-4", traces=28)
def pool_rejected(scene: ClientScene) -> None:
    """The executor is shut down while there is work.

    Bounds: Two items taken one at a time, one thread, one shutdown. What the connection does then is
    `executor-gone`.
    """
    scene.pooled(scene.service(block=1), {"a": 2})
    scene.spawn(scene.executor.shutdown, "closer")


@scenario("CH-1 CH-4", traces=240)
def pool_shut_down(scene: ClientScene) -> None:
    """Two threads shut an executor down that has work; its own threads end.

    Bounds: One item, which is there before, two threads, two shutdowns. Work that comes meanwhile is `pool-rejected`.
    """
    scene.executor = scene.lib.Executor(scene.host, 2)
    service = scene.service()
    service.pool.register_key("a")
    service.add("a", scene.work("a:1"))
    for name in ("worker1", "worker2"):
        scene.world.spawn(scene.executor.worker, name=name)
    scene.spawn(scene.executor.shutdown, "A")
    scene.spawn(scene.executor.shutdown, "B")


@scenario("CH-4", traces=10)
def pool_fails(scene: ClientScene) -> None:
    """All channels of a pool whose executor is gone are taken out, while another is registered.

    Bounds: Two channels, one of which gets an item, and one that is registered meanwhile, one thread.
    """
    service = scene.service()
    scene.pooled(service, {"a": 1})
    service.pool.register_key("b")
    scene.executor.shutdown()
    scene.spawn(lambda: service.pool.register_key("c"), "opener")


@scenario("CH-1 CH-4", traces=92)
def pool_unregister_twice(scene: ClientScene) -> None:
    """A channel with work is unregistered by two threads, one of which takes out all there are.

    Bounds: Two channels, one of which has an item, one thread, one unregistration of one and one of all.
    """
    service = scene.service()
    service.pool.register_key("b")
    scene.pooled(service, {"a": 1})
    scene.spawn(lambda: service.pool.unregister_key("a"), "closer")
    scene.spawn(service.pool.unregister_all_keys, "connection")


def held_up(scene: ClientScene, *full: str) -> tuple[WorkService, Semaphore]:
    """A service whose only thread waits in a callback until the semaphore is released; `full` channels have one item.

    Each has room for one. What is not put is not the end of the service.
    """
    service = scene.service(capacity=1)
    service.on_failure = lambda why: None
    go = scene.world.semaphore(0, "go on")
    service.pool.register_key("held")
    service.add("held", scene.work("held:1", go.acquire))
    for key in full:
        service.pool.register_key(key)
        service.add(key, scene.work(f"{key}:1"))
    return service, go


@scenario("CH-1 CH-4 CH-5", traces=8)
def pool_interrupted_once(scene: ClientScene) -> None:
    """A reader that waits for room, or is about to, is interrupted; nobody else makes room.

    Bounds: One item in the way, one interrupt. A reader that waits while a thread makes room is in `pool-interrupt`.
    """
    service, go = held_up(scene, "a")

    def put() -> None:
        service.add("a", scene.work("a:2"))
        go.release()

    scene.spawn(put, "reader")
    scene.spawn(service.pool.interrupt, "interrupter")


@scenario("CH-1 CH-4 CH-5", traces=26)
def pool_put_at_once(scene: ClientScene) -> None:
    """Two threads put into a channel that has room for one, and wait only for a while.

    Bounds: One item each, and no thread that makes room before both are answered.
    """
    service, go = held_up(scene)
    service.pool.register_key("a")

    def put(label: str) -> None:
        service.add("a", scene.work(label), 1.0)

    ends = [scene.later(partial(put, label)) for label in ("a:1", "a:2")]

    def wait() -> None:
        for end in ends:
            end()
        go.release()

    scene.spawn(wait, "main")


@scenario("CH-1 CH-4 CH-5", traces=33)
def pool_left_with_a_call(scene: ClientScene) -> None:
    """A channel with a call out is unregistered; who sees that it is gone finds the limits of the others in force.

    Bounds: Two channels, of which the other one is full; one call, one unregistration, and nobody makes room.
    """
    service, go = held_up(scene, "b")
    service.pool.register_key("a")
    service.pool.unlimit("a")

    def put() -> None:
        if not service.add("a", scene.work("a:1")):
            service.add("b", scene.work("b:2"), 1.0)
        go.release()

    scene.spawn(put, "reader")
    scene.spawn(lambda: service.pool.unregister_key("a"), "closer")


@scenario("CH-1 CH-4", traces=3)
def pool_left_by_one_of_two_calls(scene: ClientScene) -> None:
    """Two channels have a call out and one of them is unregistered: for the other's reply the limits stay lifted.

    Bounds: A third channel is full, one item is put into it behind the unregistration, and nobody makes room before.
    """
    service, go = held_up(scene, "c")
    for key in "ab":
        service.pool.register_key(key)
        service.pool.unlimit(key)

    def put() -> None:
        service.pool.unregister_key("a")
        service.add("c", scene.work("c:2"))
        go.release()

    scene.spawn(put, "reader")


@scenario("CH-1 CH-4", traces=80)
def pool_unlimited_for_two(scene: ClientScene) -> None:
    """Two threads wait for room in two channels, and a call of a third lifts all limits.

    Bounds: One item in the way of each, one call, and nobody makes room before both have put.
    """
    service, go = held_up(scene, "a", "b")
    service.pool.register_key("c")
    ends = [scene.later(partial(service.add, key, scene.work(f"{key}:2"))) for key in "ab"]

    def call() -> None:
        service.pool.unlimit("c")
        for end in ends:
            end()
        go.release()

    scene.spawn(call, "caller")


@scenario("CH-1 CH-4 CH-5", traces=165)
def pool_unregistered_for_two(scene: ClientScene) -> None:
    """Two threads wait for room in two channels, which are unregistered one after the other.

    Bounds: One item in the way of each, and nobody makes room. The second channel goes when the first thread has its
    answer.
    """
    service, go = held_up(scene, "a", "b")
    ends = [scene.later(partial(service.add, key, scene.work(f"{key}:2"))) for key in "ab"]

    def close() -> None:
        for key, end in zip("ab", ends, strict=True):
            service.pool.unregister_key(key)
            end()
        go.release()

    scene.spawn(close, "closer")


@scenario("AP-1", traces=2)
def pool_finished_twice(scene: ClientScene) -> None:
    """Two threads end one block of work, and a third call does: all but the first are refused.

    Bounds: One block, without more to do.
    """
    service = scene.service()
    service.pool.register_key("a")
    service.pool.add_work_item("a", scene.work("a:1"))
    service.pool.next_work_block()

    def finish() -> None:
        with suppress(scene.lib.Misuse):
            service.pool.finish_work_block("a")

    ends = [scene.later(finish) for _ in range(2)]

    def once_more() -> None:
        for end in ends:
            end()
        with scene.refused(scene.lib.Misuse):
            service.pool.finish_work_block("a")

    scene.spawn(once_more, "main")


@scenario("CH-5", traces=15)
def pool_room_for_two(scene: ClientScene) -> None:
    """Two threads wait for room in two channels; work of the second is taken when the first has its answer.

    Bounds: Room for one, one item in the way of each. Who takes the work runs none of it.
    """
    pool = scene.service(capacity=1).pool
    for key in "ab":
        pool.register_key(key)
        pool.add_work_item(key, scene.work(f"{key}:1"))
    ends = [scene.later(partial(pool.add_work_item, key, scene.work(f"{key}:2"))) for key in "ab"]

    def take() -> None:
        for end in ends:
            pool.next_work_block()
            end()

    scene.spawn(take, "worker")
