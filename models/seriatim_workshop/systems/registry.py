"""The systems there are, and what the documentation of each promises."""

from __future__ import annotations

from dataclasses import dataclass, field

ADAPTERS = "seriatim_workshop.systems.adapters"
LOGS = "seriatim_workshop.systems.logs"
SERVED = "seriatim_workshop.systems.served"
GROUP_LOCKED = (
    "as documented: while a message of a group is in flight, no other of the group is handed out, "
    "so a get finds nothing (P14, P20)"
)
"""Of SQS's FIFO queues."""


@dataclass(frozen=True)
class Listed:
    """One system."""

    id: str
    title: str
    package: str
    """The distribution whose version is shown, if the system does not say its own."""
    promise: str
    """What its documentation promises about order and ownership, and where."""
    factory: str = ""
    """For `--python`; empty for a broker of AMQP."""
    server: str = ""
    """Its description in ``described``; empty for what lives in the process that tests it."""
    arguments: dict[str, str | int] = field(default_factory=dict)
    """Of its queues."""
    without: frozenset[str] = frozenset()
    """Features left out, because what they break would hide all else."""
    argued: str = ""
    """Why what it violates is, or is not, against its documentation."""
    known: frozenset[str] = frozenset()
    """Properties that it is known to violate; any other is news."""


SYSTEMS: dict[str, Listed] = {
    listed.id: listed
    for listed in (
        Listed(
            "rabbitmq-classic",
            "RabbitMQ, classic queue",
            "rabbitmq-server",
            "requeued at its original position, if possible; https://www.rabbitmq.com/docs/nack",
            server="rabbitmq",
        ),
        Listed(
            "rabbitmq-priority",
            "RabbitMQ, classic queue with three priorities",
            "rabbitmq-server",
            "messages of higher priority first; https://www.rabbitmq.com/docs/priority",
            server="rabbitmq",
            arguments={"x-max-priority": 2},
        ),
        Listed(
            "rabbitmq-quorum",
            "RabbitMQ, quorum queue",
            "rabbitmq-server",
            "requeued at the head or at the tail, by the delivery limit; https://www.rabbitmq.com/docs/quorum-queues",
            server="rabbitmq",
            arguments={"x-queue-type": "quorum"},
            known=frozenset({"P5", "P6", "P10"}),
            argued=(
                "P5 and P6 of requeued messages, as documented (without a delivery limit they are written to the log "
                "anew, https://github.com/rabbitmq/rabbitmq-server/issues/3776); P10: an exclusive consumer is "
                "accepted beside others, and others beside it, which its makers know "
                "(https://github.com/rabbitmq/rabbitmq-website/issues/1973)"
            ),
        ),
        Listed(
            "brokerj",
            "Apache Qpid Broker-J, standard queue",
            "org.apache.qpid:qpid-broker-core",
            "strict order: an entry keeps its place for life",
            server="brokerj",
            without=frozenset({"drop"}),
            known=frozenset({"P1"}),
            argued="not documented anywhere: tag 0 or multiple with requeue loses a message (F-93)",
        ),
        Listed(
            "brokerj-drop",
            "the same, with nack and reject without requeue",
            "org.apache.qpid:qpid-broker-core",
            "a message rejected without requeue is discarded or dead-lettered; AMQP 0-9-1, basic.reject",
            server="brokerj",
            known=frozenset({"P1", "P5", "P14"}),
            argued="as above; and what is rejected without requeue comes again (P14 sees it lie while it is away)",
        ),
        Listed(
            "beanstalkd",
            "beanstalkd",
            "beanstalkd",
            "jobs are reserved by priority, those of one in the order put; protocol.txt",
            factory=f"{ADAPTERS}:Beanstalkd",
            server="beanstalkd",
        ),
        Listed(
            "redis-streams",
            "Redis streams, consumer group, leases claimed first",
            "redis-server",
            "each entry to one consumer, claimed again by hand; https://redis.io/docs/latest/develop/data-types/streams",
            factory=f"{ADAPTERS}:RedisStreams",
            server="redis",
        ),
        Listed(
            "nats-jetstream",
            "NATS JetStream, work queue, pull consumer",
            "nats-server",
            "at least once; a nak is for redelivery, without a place; https://docs.nats.io/nats-concepts/jetstream",
            factory=f"{ADAPTERS}:JetStream",
            server="nats",
            known=frozenset({"P5"}),
            argued="documented: a nak names no place",
        ),
        Listed(
            "queue.Queue",
            "queue.Queue",
            "",
            "first in, first out; library reference",
            "queue:Queue",
        ),
        Listed(
            "asyncio.Queue",
            "asyncio.Queue",
            "",
            "first in, first out; library reference",
            f"{ADAPTERS}:AsyncioQueue",
        ),
        Listed(
            "persist-queue",
            "persist-queue, SQLiteAckQueue",
            "persist-queue",
            "a queue with acknowledgements; its README",
            f"{ADAPTERS}:PersistQueue",
        ),
        Listed(
            "litequeue",
            "litequeue",
            "litequeue",
            "a FIFO queue with done, failed and retry; its README",
            f"{ADAPTERS}:LiteQueue",
        ),
        Listed(
            "kombu-memory",
            "kombu, memory transport",
            "kombu",
            "AMQP's methods over lists in memory; kombu.transport.virtual",
            f"{ADAPTERS}:KombuMemory",
            known=frozenset({"P1", "P5", "P7", "P14", "answers"}),
            argued="a transport for tests; nothing says that closing may lose or limits be passed",
        ),
        Listed(
            "diskcache",
            "diskcache, push and pull",
            "diskcache",
            "pull takes from the front what push put at the back; https://grantjenks.com/docs/diskcache/tutorial.html",
            f"{ADAPTERS}:DiskCacheQueue",
        ),
        Listed(
            "queuelib-fifo",
            "queuelib, FifoDiskQueue",
            "queuelib",
            "first in, first out, on disk; https://github.com/scrapy/queuelib#readme",
            f"{ADAPTERS}:QueuelibFifo",
        ),
        Listed(
            "queuelib-lifo",
            "queuelib, LifoDiskQueue",
            "queuelib",
            "last in, first out: a stack, which no profile of a queue describes; https://github.com/scrapy/queuelib#readme",
            f"{ADAPTERS}:QueuelibLifo",
            known=frozenset({"P4", "P5", "P20"}),
            argued="as documented: a stack",
        ),
        Listed(
            "huey-sqlite",
            "huey, SqliteStorage",
            "huey",
            "tasks by priority, then first in, first out; https://huey.readthedocs.io/en/latest/guide.html",
            f"{ADAPTERS}:HueySqlite",
        ),
        Listed(
            "dramatiq-stub",
            "dramatiq, StubBroker",
            "dramatiq",
            "a broker in memory for unit tests; requeue, by default, does nothing; https://dramatiq.io/reference.html",
            f"{ADAPTERS}:DramatiqStub",
        ),
        Listed(
            "moto-sqs",
            "moto, SQS standard queue",
            "moto",
            "at least once, best-effort order; https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues.html",
            f"{ADAPTERS}:MotoSqs",
        ),
        Listed(
            "moto-sqs-fifo",
            "moto, SQS FIFO queue",
            "moto",
            "in order within a group, of which one message at a time is processed; https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html",
            f"{ADAPTERS}:MotoSqsFifo",
            known=frozenset({"P14", "P20"}),
            argued=GROUP_LOCKED,
        ),
        Listed(
            "kafka",
            "Apache Kafka, one broker, partitions assigned by hand",
            "org.apache.kafka:kafka_2.13",
            "a partition is read in order, again from the committed offset; https://kafka.apache.org/documentation/#design",
            f"{LOGS}:Kafka",
            server="kafka",
        ),
        Listed(
            "elasticmq",
            "ElasticMQ, standard queue",
            "org.elasticmq:elasticmq-rest-sqs",
            "SQS's interface: at least once, best-effort order; https://github.com/softwaremill/elasticmq#readme",
            f"{SERVED}:ElasticMq",
            server="elasticmq",
            known=frozenset({"P5", "P20"}),
            argued="best-effort order: a visibility timeout that ends puts a message at its new time, behind others",
        ),
        Listed(
            "elasticmq-fifo",
            "ElasticMQ, FIFO queue",
            "org.elasticmq:elasticmq-rest-sqs",
            "SQS's interface: in order within a group, of which one message at a time is processed; https://github.com/softwaremill/elasticmq#readme",
            f"{SERVED}:ElasticMqFifo",
            server="elasticmq",
            known=frozenset({"P14", "P20"}),
            argued=GROUP_LOCKED,
        ),
        Listed(
            "nsq",
            "NSQ, one nsqd, one channel",
            "nsqd",
            "at least once, un-ordered; https://nsq.io/overview/features_and_guarantees.html",
            f"{SERVED}:Nsq",
            server="nsq",
            known=frozenset({"P5", "P6"}),
            argued="as documented: messages are un-ordered, and one that is requeued goes behind the others",
        ),
        Listed(
            "artemis-stomp",
            "Apache ActiveMQ Artemis, anycast queue, STOMP 1.2",
            "org.apache.activemq:artemis-server",
            "a queue in order, what is not acknowledged is delivered again; https://activemq.apache.org/components/artemis/documentation/latest/stomp.html",
            f"{SERVED}:ArtemisStomp",
            server="artemis",
        ),
        Listed(
            "postgresql",
            "PostgreSQL, FOR UPDATE SKIP LOCKED",
            "psycopg",
            "rows that are locked are skipped; an inconsistent view, so no order is promised; https://www.postgresql.org/docs/current/sql-select.html",
            f"{ADAPTERS}:PostgresSkipLocked",
            server="postgresql",
        ),
    )
}
