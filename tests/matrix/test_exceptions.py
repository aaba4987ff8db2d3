"""What the outcome oracle lets pass hides no mistake beside it.

In each program here the right reference has an outcome that an exception lets pass. A mistake near it is
reported all the same, and by the oracle alone: no property is asked. Those of the pool's runnable, of the job
and of who is sent a message were hidden while the exception compared less.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from seriatim_models.matrix.cells import run_pair
from seriatim_models.matrix.client_scenes import (
    CALLED_LATER,
    CLIENT_SYSTEM,
    NEVER_SENT,
    NOT_ANSWERED,
    POOL_SYSTEM,
    REPLY_NOT_READ,
    TOO_LATE,
    UNTIL_THE_CHANNELS_END,
    UNTIL_THE_END,
)
from seriatim_models.matrix.queue_scenes import ANY_TURN, MESSAGE_BY_MESSAGE, PUSH_SYSTEM
from seriatim_models.matrix.queue_scenes import CALLED_LATER as QUEUE_CALLED_LATER
from seriatim_models.matrix.scene import ExpectedDifference, MatrixSystem
from seriatim_models.matrix.work import PairData
from seriatim_models.programs.mutant_modules import load, source
from seriatim_workshop.mutation.exhaustive import modules_with

SENT = """            if entry is not None:
                self._last_delivered.set(consumer.in_all)
                consumer.target.send(consumer, entry)
            return entry
"""
TWO_PUBLISH = "settle two-two: subscribe A, subscribe B; enqueue m1 | enqueue m2"
ENDED = """            if self._closed is not None:
                return
            self._closed = error
            channels"""
REPLY_AWAITED = """        while call.reply is None:
            self._wait(call)
"""
TWO_GET = "serve impatient: ; get c.1 q False 1 | get c.1 q False None"
Edit = tuple[str, str, str]
"""The module, a text that stands once in it, and what replaces that."""
TAKEN_AND_THEN_SENT: Edit = (
    "queue",
    """            while self.deliver_to(consumer, "job"):
                pass
""",
    """            taken = []
            while consumer.wants_work.get() and (entry := self.attempt(consumer, "job")):
                taken.append(entry)
            for entry in taken:
                if consumer.wants_work.get():
                    consumer.target.send(consumer, entry)
""",
)
CASES: dict[str, tuple[MatrixSystem, str, ExpectedDifference, Edit, str]] = {
    "a channel whose work was all run is ended by a runnable that nobody needs": (
        POOL_SYSTEM,
        "serve waiting: add a; add a | shutdown",
        UNTIL_THE_END,
        (
            "workpool",
            """        if self.pool.finish_work_block(key):
            self._start_runnable()
""",
            """        self.pool.finish_work_block(key)
        self._start_runnable()
""",
        ),
        "ran is {'a': ['a:n1', 'a:n2', 'a:n3', 'a:n4']}",
    ),
    "a publish is sent before its channel is asked whether it is open": (
        CLIENT_SYSTEM,
        "serve queues: ; publish c.1 x | bind c.1 r x *",
        NOT_ANSWERED,
        (
            "client",
            """        with self._lock:
            self._ensure_open()
            self.server.request(self.connection.wire, self.number, act)
""",
            """        self.server.request(self.connection.wire, self.number, act)
        with self._lock:
            self._ensure_open()
""",
        ),
        "returned is",
    ),
    "of the channels of a connection that ends only the first is closed": (
        CLIENT_SYSTEM,
        "serve inside-publish: ; disconnect c",
        UNTIL_THE_CHANNELS_END,
        (
            "client",
            """            channel.shut_down(error)
        if tell""",
            """            channel.shut_down(error)
            break
        if tell""",
        ),
        "c.2 is {'closed': 0",
    ),
    "the server serves its queues before it has done what was asked": (
        CLIENT_SYSTEM,
        "serve inside-declare: ; close_connection c",
        REPLY_NOT_READ,
        (
            "broker",
            """            try:
                value = act(channel)
            except Closed as error:
                self.close_channel(channel)
                wire.send(Frame("close", number, call, error=error))
            else:
                if call:
                    wire.send(Frame("reply", number, call, value))
            self._push_all()
""",
            """            self._push_all()
            try:
                value = act(channel)
            except Closed as error:
                self.close_channel(channel)
                wire.send(Frame("close", number, call, error=error))
            else:
                if call:
                    wire.send(Frame("reply", number, call, value))
""",
        ),
        "q is [('m1', False)]",
    ),
    "whether a connection has ended is asked before the lock": (
        CLIENT_SYSTEM,
        "serve inside-fail: ; disconnect c",
        CALLED_LATER,
        (
            "client",
            f"        with self._lock:\n{ENDED}",
            f"        ended = self._closed is not None\n        with self._lock:\n{ENDED}".replace(
                "if self._closed is not None:", "if ended:"
            ),
        ),
        "c.2 is {'closed': 320",
    ),
    "a call that is too late is made once more": (
        CLIENT_SYSTEM,
        "serve impatient: ; get c.1 q False 1 | qos c.1 1 True",
        TOO_LATE,
        (
            "client",
            REPLY_AWAITED,
            """        try:
            while call.reply is None:
                self._wait(call)
        except CallTimeout:
            self.server.request(self.connection.wire, self.number, call.act)
            raise
""",
        ),
        "'holds': [(1, 'm1'), (2, 'm2')]",
    ),
    "a message that came too late is acknowledged": (
        CLIENT_SYSTEM,
        TWO_GET,
        TOO_LATE,
        (
            "client",
            REPLY_AWAITED,
            """        try:
            while call.reply is None:
                self._wait(call)
        except CallTimeout:
            call.on_reply = lambda: self.server.request(
                self.connection.wire, self.number, lambda c: self.server.settle(c, 0, True, None)
            )
            raise
""",
        ),
        "'holds': [(2, 'm2')]",
    ),
    "a call whose turn has not come in time is sent all the same": (
        CLIENT_SYSTEM,
        TWO_GET,
        NEVER_SENT,
        (
            "client",
            """        while self._active is not None:
            self._wait(call)
""",
            """        while self._active is not None:
            if not self._changed.wait(call.timeout):
                break
""",
        ),
        "'get c.1 q False None': 'unfinished'",
    ),
    "a job takes all for a consumer and then sends it, unless it has paused": (
        PUSH_SYSTEM,
        "settle holding: release A m1, enqueue m2; pause A | job",
        MESSAGE_BY_MESSAGE,
        TAKEN_AND_THEN_SENT,
        "'sent': ['m1'",
    ),
    "a job does so for whom a callback has subscribed": (
        PUSH_SYSTEM,
        "settle inside-subscribe: enqueue m1, close A, enqueue m2; pause by-A | job",
        MESSAGE_BY_MESSAGE,
        TAKEN_AND_THEN_SENT,
        "by-A is {'credit': None, 'wants': False",
    ),
    "a job does so behind a browser": (
        PUSH_SYSTEM,
        "settle browser: enqueue m1, enqueue m2, subscribe A, subscribe B; pause B | job",
        MESSAGE_BY_MESSAGE,
        TAKEN_AND_THEN_SENT,
        "B is {'credit': None, 'wants': False, 'acquires': True, 'sent': []}",
    ),
    "a release moves the pointer of the first consumer alone back": (
        PUSH_SYSTEM,
        "settle inside-release: subscribe B; enqueue m1 | enqueue m2",
        QUEUE_CALLED_LATER,
        (
            "queue",
            """                self._rewind(consumer, entry)

""",
            """                self._rewind(consumer, entry)
                break

""",
        ),
        "m1 is AVAILABLE, and ACQUIRED by B in order",
    ),
    "a message is sent to whom the queue served last": (
        PUSH_SYSTEM,
        TWO_PUBLISH,
        ANY_TURN,
        (
            "queue",
            SENT,
            """            if entry is not None:
                self._last_delivered.set(consumer.in_all)
                served = self._last_delivered.get().consumer
                served.target.send(served, entry)
            return entry
""",
        ),
        "'sent': ['m2', 'm1']",
    ),
    "a message is sent to whom the queue served last, too": (
        PUSH_SYSTEM,
        TWO_PUBLISH,
        ANY_TURN,
        (
            "queue",
            SENT,
            """            if entry is not None:
                self._last_delivered.set(consumer.in_all)
                consumer.target.send(consumer, entry)
                served = self._last_delivered.get().consumer
                if served is not consumer:
                    served.target.send(served, entry)
            return entry
""",
        ),
        "'sent': ['m2', 'm1']",
    ),
    "a publisher sends what a job has taken, too": (
        PUSH_SYSTEM,
        "settle two: subscribe A, subscribe B; enqueue m1 | job",
        ANY_TURN,
        (
            "queue",
            SENT,
            SENT.replace(
                "            return entry\n",
                """            elif only is not None and not only.available() and consumer.wants_work.get():
                consumer.target.send(consumer, only)
            return entry
""",
            ),
        ),
        "'sent': ['m1'",
    ),
}


@pytest.mark.parametrize("mistake", CASES)
def test_a_mistake_beside_what_is_let_pass_is_reported(mistake: str) -> None:
    system, key, exception, (module, old, new), what = CASES[mistake]
    of = replace(system, properties=())
    pair, right = PairData.read(key, system).pair(of), load(system.reference)
    result = run_pair(of, right, pair)
    assert (result.problem, result.exhausted) == ("", True)
    assert exception.why in result.excused
    assert source(module).count(old) == 1, "the edit is of the text as it is"
    wrong = modules_with(module, source(module).replace(old, new))
    problem = run_pair(of, wrong, pair, right=right).problem
    assert problem.startswith("outcome: "), problem
    assert what in problem
