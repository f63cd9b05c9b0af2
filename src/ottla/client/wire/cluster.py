"""A cluster, reached through its bootstrap servers: leaders, coordinators, and retries.

Connections are opened on demand and shared by all calls. Not thread-safe.
"""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from typing import Any, NamedTuple, Self, TypeVar
from uuid import UUID

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.metadata.v13.request import MetadataRequestTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8

from ottla.client.wire.connection import Connection
from ottla.client.wire.errors import BrokerError, Unreachable, WireError, validate_answer
from ottla.client.wire.security import PLAINTEXT, Security
from ottla.protocol.addresses import Address, parse_servers
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.topics import TopicPartition as TopicPartition  # noqa: PLC0414 - for callers

T = TypeVar("T")
R = TypeVar("R")

NO_LEADER = -1

_FIRST_PAUSE_S = 0.05
_PAUSE_S_MAX = 1.0


class Topic(NamedTuple):
    id: UUID | None  # None from brokers older than topic ids.
    leaders: Mapping[int, int]  # Node id by partition; NO_LEADER if there is none.
    is_internal: bool
    replicas: Mapping[int, tuple[int, ...]]  # Node ids by partition, the preferred leader first.


class CoordinatorType:
    GROUP = i8(0)
    TRANSACTION = i8(1)


class Cluster:
    def __init__(
        self,
        bootstrap_servers: str,
        *,
        client_id: str = "ottla",
        request_timeout_ms: int = 30_000,
        retry_timeout_ms: int = 60_000,
        security: Security = PLAINTEXT,
    ) -> None:
        """`retry_timeout_ms` bounds one operation including all retries."""
        self.bootstrap_servers = bootstrap_servers
        self._bootstrap = parse_servers(bootstrap_servers)
        self._client_id = client_id
        self._security = security
        self._timeout_s = request_timeout_ms / 1000
        self._retry_timeout_s = retry_timeout_ms / 1000
        # Called before each retry, with the seconds since the operation began; an exception from
        # it ends the operation.
        self.on_retry: Callable[[float], object] = lambda _: None
        self._addresses: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[str, int], Connection] = {}
        self._spare: dict[str, Connection] = {}  # By address; no response is outstanding on them.
        self._topics: dict[str, Topic] = {}
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}
        self._known_since_s: float | None = None  # When the older of those two was learned.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for connection in (*self._connections.values(), *self._spare.values()):
            connection.close()
        self._connections.clear()
        self._spare.clear()

    @property
    def servers(self) -> str:
        """The bootstrap servers, and the brokers that were there when it last asked."""
        known = dict.fromkeys([*self._bootstrap, *self._addresses.values()])
        return ",".join(str(Address(host, port)) for host, port in known)

    def retry(self, operation: Callable[[], T]) -> T:
        """Run the operation, with retries and fresh metadata after errors that may pass."""
        begun = time.monotonic()
        deadline = begun + self._retry_timeout_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return operation()
            except WireError as error:
                if not error.may_pass or time.monotonic() + pause_s > deadline:
                    raise
            self.on_retry(time.monotonic() - begun)
            self.forget()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    def forget(self) -> None:
        """Drop all connections and metadata."""
        self.close()
        self.forget_metadata()

    def forget_metadata(self) -> None:
        """Look up leaders and coordinators again when they are next needed."""
        self._topics.clear()
        self._coordinators.clear()
        self._known_since_s = None

    def forget_old_metadata(self, age_s_max: float) -> None:
        """`forget_metadata` if any of it is older than `age_s_max`."""
        if self._known_since_s is not None and time.monotonic() - self._known_since_s > age_s_max:
            self.forget_metadata()

    def learn_from(self, other: "Cluster") -> None:
        """Take over topics and broker addresses from another client of the same cluster."""
        self._note_time()
        self._addresses |= other._addresses
        self._topics |= other._topics

    def topics(self, names: Collection[str] | None = None) -> dict[str, Topic]:
        """The topics of these names that exist, or all topics; always asks the cluster."""
        return self.retry(lambda: self._ask_topics(names))

    def topic_to_write(self, name: str) -> Topic:
        """The cached topic; a missing one is created if the cluster auto-creates topics."""
        if name in self._topics:
            return self._topics[name]
        return self.retry(lambda: self._ask_topics([name], create_missing=True)[name])

    def leader(self, topic_partition: TopicPartition) -> Connection:
        return self.connection(self._leader_address(topic_partition))

    def ask_leaders(
        self,
        wanted: Mapping[TopicPartition, T],
        request: Callable[[Mapping[TopicPartition, T]], Any],
        results: Callable[[Any], dict[TopicPartition, R | BrokerError]],
    ) -> dict[TopicPartition, R]:
        """Ask the leaders of partitions, with retries for those without a result.

        `request` makes the request to one leader, `results` reads its response.
        """
        found: dict[TopicPartition, R] = {}

        def ask_what_is_missing() -> None:
            by_leader: dict[Connection, dict[TopicPartition, T]] = {}
            for topic_partition, value in wanted.items():
                if topic_partition not in found:
                    by_leader.setdefault(self.leader(topic_partition), {})[topic_partition] = value
            problem: BrokerError | None = None
            for leader, asked in by_leader.items():
                given = results(leader.call(request(asked)))
                problem = keep_results(found, asked, given) or problem
            if problem is not None:
                raise problem

        self.retry(ask_what_is_missing)
        return found

    def own_connection_to_leader(self, topic_partition: TopicPartition) -> Connection:
        """A connection for pipelined requests; the caller closes it or gives it back."""
        return self._own_connection(*self._leader_address(topic_partition))

    def own_connections_to_brokers(self) -> list[Connection]:
        """Such a connection to every broker named in the last metadata response."""
        if not self._addresses:
            self._ask_metadata(())
        with ExitStack() as made:
            connections = [
                made.enter_context(closing(self._own_connection(*address)))
                for address in self._addresses.values()
            ]
            made.pop_all()
        return connections

    def _own_connection(self, host: str, port: int) -> Connection:
        return self._spare.pop(f"{host}:{port}", None) or self._connect(host, port)

    def give_back(self, connection: Connection) -> None:
        """Return an own connection for reuse. All its responses must have been received."""
        surplus = self._spare.pop(connection.address, None)
        if surplus is not None:
            surplus.close()
        self._spare[connection.address] = connection

    def topic(self, name: str) -> Topic:
        """From the cache if it is there; UNKNOWN_TOPIC_OR_PARTITION if it does not exist."""
        if name not in self._topics:
            self._ask_topics([name])
        if name not in self._topics:
            raise BrokerError(ErrorCode.unknown_topic_or_partition, f"topic {name}")
        return self._topics[name]

    def coordinator(self, kind: i8, key: str) -> Connection:
        """As it was when last asked."""
        return self.coordinators(kind, (key,))[key]

    def coordinators(self, kind: i8, keys: Collection[str]) -> dict[str, Connection]:
        """As they were when last asked."""
        self.learn_coordinators(kind, keys)
        return {key: self.connection(self._coordinators[kind, key]) for key in keys}

    def coordinator_address(self, kind: i8, key: str) -> tuple[str, int] | None:
        """The cached address, to hand to another process; None if unknown."""
        return self._coordinators.get((kind, key))

    def note_coordinator(self, kind: i8, key: str, address: tuple[str, int]) -> None:
        """Cache an address that another process has looked up."""
        self._note_time()
        self._coordinators[kind, key] = address

    def learn_coordinators(self, kind: i8, keys: Collection[str]) -> None:
        """Look up all coordinators that are not cached, in one request."""
        missing = tuple(key for key in keys if (kind, key) not in self._coordinators)
        if missing:
            self._ask_coordinators(kind, missing)

    def _ask_coordinators(self, kind: i8, keys: tuple[str, ...]) -> None:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
        self._note_time()
        answers = self.any_broker().call(request).coordinators
        if len(answers) != len(keys):
            raise Unreachable(f"an answer of {len(answers)} items where {len(keys)} were asked for")
        for key, found in zip(keys, answers, strict=True):
            validate_answer(found.error_code, f"the coordinator of {key}")
            self._coordinators[kind, found.key or key] = found.host, found.port

    def _note_time(self) -> None:
        if self._known_since_s is None:
            self._known_since_s = time.monotonic()

    def _leader_address(self, topic_partition: TopicPartition) -> tuple[str, int]:
        topic = self.topic(topic_partition.topic)
        return leader_address(topic, topic_partition, self._addresses)

    def _ask_topics(
        self, names: Collection[str] | None, *, create_missing: bool = False
    ) -> dict[str, Topic]:
        self._note_time()
        response = self._ask_metadata(names, create_missing=create_missing)
        found = topics_in(response, create_missing=create_missing)
        self._topics |= found
        return found

    def _ask_metadata(self, names: Collection[str] | None, *, create_missing: bool = False) -> Any:
        response = self.any_broker().call(metadata_request(names, create_missing=create_missing))
        self._addresses = {
            broker.node_id: (broker.host, broker.port) for broker in response.brokers
        }
        return response

    def any_broker(self) -> Connection:
        for connection in self._connections.values():
            return connection
        reasons = []
        for address in dict.fromkeys([*self._addresses.values(), *self._bootstrap]):
            try:
                return self.connection(address)
            except WireError as error:
                if not error.may_pass:
                    raise
                reasons.append(str(error))
        raise Unreachable("; ".join(reasons))

    def controller(self) -> Connection:
        """A connection to the controller, which creates topics."""
        response = self._ask_metadata(())
        address = self._addresses.get(response.controller_id)
        return self.any_broker() if address is None else self.connection(address)

    def every_broker(self) -> list[Connection]:
        """Connections to all current brokers."""
        self._ask_metadata(())
        return [self.connection(address) for address in self._addresses.values()]

    def connection(self, address: tuple[str, int]) -> Connection:
        """The shared connection to a broker named in an earlier response."""
        if address not in self._connections:
            self._connections[address] = self._connect(*address)
        return self._connections[address]

    def _connect(self, host: str, port: int) -> Connection:
        return Connection(
            host,
            port,
            client_id=self._client_id,
            timeout_s=self._timeout_s,
            security=self._security,
        )


def metadata_request(
    names: Collection[str] | None, *, create_missing: bool = False
) -> MetadataRequest:
    """For these topics, or for all."""
    wanted = None
    if names is not None:
        wanted = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in names)
    return MetadataRequest(
        topics=wanted,
        allow_auto_topic_creation=create_missing,
        include_topic_authorized_operations=False,
    )


def topics_in(response: Any, *, create_missing: bool = False) -> dict[str, Topic]:
    """The existing topics, by name; raises if auto-creation of one failed."""
    found = {}
    for topic in response.topics:
        if topic.error_code is ErrorCode.unknown_topic_or_partition and not create_missing:
            continue
        validate_answer(topic.error_code, f"topic {topic.name}")
        leaders = {item.partition_index: item.leader_id for item in topic.partitions}
        replicas = {item.partition_index: item.replica_nodes for item in topic.partitions}
        found[topic.name] = Topic(topic.topic_id, leaders, topic.is_internal, replicas)
    return found


def leader_address(
    topic: Topic, topic_partition: TopicPartition, addresses: Mapping[int, tuple[str, int]]
) -> tuple[str, int]:
    node_id = topic.leaders.get(topic_partition.partition)
    if node_id is None:
        raise BrokerError(ErrorCode.unknown_topic_or_partition, f"partition {topic_partition}")
    if node_id not in addresses:
        raise BrokerError(ErrorCode.leader_not_available, f"partition {topic_partition}")
    return addresses[node_id]


def keep_results(
    found: dict[TopicPartition, R],
    asked: Collection[TopicPartition],
    given: Mapping[TopicPartition, R | BrokerError],
) -> BrokerError | None:
    """Add a leader's results to those found; return the error of a partition that it refused."""
    if given.keys() != set(asked):
        return BrokerError(ErrorCode.unknown_server_error, "an answer about other partitions")
    problem: BrokerError | None = None
    for topic_partition, result in given.items():
        if isinstance(result, BrokerError):
            problem = result
        else:
            found[topic_partition] = result
    return problem


def by_topic(topic_partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic_partition in topic_partitions:
        grouped.setdefault(topic_partition.topic, []).append(topic_partition.partition)
    return grouped


def expect_one(items: Any) -> Any:
    """The only item of a response about one thing."""
    if len(items) != 1:
        raise Unreachable(f"an answer of {len(items)} items where one was asked for")
    return items[0]
