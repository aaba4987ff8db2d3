"""Logs of other people behind the methods of the log drive: Kafka, through kafka-python."""

from __future__ import annotations

import importlib
import time
import uuid
from functools import cache

from seriatim_workshop.systems.adapters import PATIENCE, Handle, target

PARTITIONS = 2
POLL = 50  # milliseconds of one poll


@cache
def _clients(server: str) -> tuple[Handle, Handle]:
    """An administrator and a producer, which all scripts of this process share."""
    kafka: Handle = importlib.import_module("kafka")
    admin = kafka.KafkaAdminClient(bootstrap_servers=server)
    return admin, kafka.KafkaProducer(bootstrap_servers=server, acks="all", linger_ms=0)


class Kafka:
    """Kafka, one broker. A reader is a consumer of a group, its partition assigned by hand, with one record a poll.

    A poll that is late is not a poll that finds nothing: the end of the partition decides.
    """

    name = "Apache Kafka"
    version = "3.9.1"  # as kafka.xml pins it
    can = ("publish", "read", "seek", "commit", "open", "close", "queues", "partitions")

    def __init__(self) -> None:
        self._kafka: Handle = importlib.import_module("kafka")
        host, port = target()
        self._server = f"{host}:{port}"
        self._mark = uuid.uuid4().hex[:12]
        self._admin, self._producer = _clients(self._server)
        self._topics: set[str] = set()
        self._readers: dict[tuple[int, str, str, int], Handle] = {}

    def _topic(self, q: str) -> str:
        name = f"{q}-{self._mark}"
        if name not in self._topics:
            self._topics.add(name)
            new = importlib.import_module("kafka.admin").NewTopic
            self._admin.create_topics([new(name, PARTITIONS, 1)])
        return name

    def open(self, ch: int) -> None: ...

    def publish(self, q: str, m: str, part: int) -> int:
        sent = self._producer.send(self._topic(q), m.encode(), partition=part)
        return int(sent.get(timeout=PATIENCE).offset)

    def _reader(self, ch: int, q: str, ctag: str, part: int) -> tuple[Handle, Handle]:
        partition = self._kafka.TopicPartition(self._topic(q), part)
        key = (ch, q, ctag, part)
        if key not in self._readers:
            reader = self._kafka.KafkaConsumer(
                bootstrap_servers=self._server,
                group_id=f"{ctag}-{self._mark}",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                max_poll_records=1,
            )
            reader.assign([partition])
            self._readers[key] = reader
        return self._readers[key], partition

    def read(self, ch: int, q: str, ctag: str, part: int) -> tuple[str, int] | None:
        reader, partition = self._reader(ch, q, ctag, part)
        until = time.monotonic() + PATIENCE
        while True:
            records = reader.poll(timeout_ms=POLL).get(partition)
            if records:
                return records[0].value.decode(), records[0].offset
            if reader.position(partition) >= reader.end_offsets([partition])[partition]:
                return None
            if time.monotonic() > until:
                raise RuntimeError("records are there, and no poll gets them")

    def seek(self, ch: int, q: str, ctag: str, part: int, pos: int) -> None:
        """Have a reader go on elsewhere."""
        reader, partition = self._reader(ch, q, ctag, part)
        reader.seek(partition, pos)

    def commit(self, ch: int, q: str, ctag: str, part: int, pos: int) -> None:
        """Store where the group's readers begin."""
        reader, partition = self._reader(ch, q, ctag, part)
        offset = importlib.import_module("kafka.structs").OffsetAndMetadata
        reader.commit({partition: offset(pos, "", -1)})

    def close(self, ch: int) -> None:
        for key in [key for key in self._readers if key[0] == ch]:
            self._readers.pop(key).close(autocommit=False)

    def end(self) -> None:
        for reader in self._readers.values():
            reader.close(autocommit=False)
        if self._topics:
            self._admin.delete_topics(list(self._topics))
