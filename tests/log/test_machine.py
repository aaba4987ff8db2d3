"""The log against a list: publish, read, fail, crash, reopen, in any order."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from seriatim.host import Threads
from seriatim.log import Channel, Topic
from seriatim_models.programs.disk import MemoryDisk


class LogMachine(RuleBasedStateMachine):
    """The list is all that was published; a number is how far the channel has come."""

    @initialize()
    def start(self) -> None:
        self.disk = MemoryDisk()
        self.written: list[bytes] = []
        self.done = 0
        self.parked = 0
        self.open()

    def open(self) -> None:
        self.topic = Topic(Threads(), self.disk, 40)
        self.channel = Channel(self.topic, "c", max_attempts=1)

    @rule(message=st.binary(max_size=20))
    def publish(self, message: bytes) -> None:
        self.topic.publish(message)
        self.written.append(message)

    @rule(n=st.integers(1, 5))
    def commit_batch(self, n: int) -> None:
        batch = self.channel.read(n)
        assert [d.message for d in batch] == self.written[self.done : self.done + n]
        if batch:
            self.channel.commit(batch[-1].following)
            self.done += len(batch)

    @rule(fails=st.booleans())
    def handle_one(self, fails: bool) -> None:
        if self.done == len(self.written):
            return
        seen: list[bytes] = []

        def handler(message: bytes) -> None:
            seen.append(message)
            self.channel.disconnect()
            if fails:
                raise ValueError

        self.channel.connect()
        self.channel.consume(handler)
        assert seen == [self.written[self.done]]
        self.done += 1
        self.parked += fails

    @rule(torn=st.binary(max_size=11))
    def crash(self, torn: bytes) -> None:
        """Less than a header is never a record."""
        files = self.disk.survivors()
        last = max((n for n in files if n.endswith(".log")), default="00000000.log")
        files[last] = files.get(last, b"") + torn
        self.disk = MemoryDisk(files)
        self.open()

    @invariant()
    def the_rest_is_unread(self) -> None:
        assert [d.message for d in self.channel.read(1000)] == self.written[self.done :]
        assert len(self.channel.parked()) == self.parked


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
