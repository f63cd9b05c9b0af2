"""A cluster, reached through its bootstrap servers, for many concurrent callers on one loop.

Leaders and coordinators are cached for METADATA_AGE_S_MAX, and forgotten when an operation fails
with a transient error. Connections are shared; a broken one is reopened.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final, Self, TypeVar

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.static.primitive import i8

from ottla.client.async_wire.connection import Connection
from ottla.client.wire.cluster import (
    Topic,
    TopicPartition,
    expect_one,
    keep_results,
    leader_address,
    metadata_request,
    topics_in,
)
from ottla.client.wire.errors import BrokerError, Unreachable, WireError, validate_answer
from ottla.client.wire.security import PLAINTEXT, Security
from ottla.protocol.addresses import parse_servers
from ottla.protocol.errors import ErrorCode

T = TypeVar("T")
R = TypeVar("R")
Address = tuple[str, int]

METADATA_AGE_S_MAX: Final = 30.0
REMEMBERED_MAX: Final = 10_000  # Topics, and coordinators; above this all are forgotten.

_FIRST_PAUSE_S = 0.05
_PAUSE_S_MAX = 1.0


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
        self._bootstrap = parse_servers(bootstrap_servers)
        self._client_id = client_id
        self._security = security
        self._timeout_s = request_timeout_ms / 1000
        self._retry_timeout_s = retry_timeout_ms / 1000
        self._addresses: dict[int, Address] = {}
        self._connections: dict[Address, asyncio.Task[Connection]] = {}
        self._topics: dict[str, tuple[float, Topic]] = {}  # With the time of the request.
        self._coordinators: dict[tuple[int, str], Address] = {}
        self._asking = asyncio.Lock()  # One metadata request at a time.

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for opening in self._connections.values():
            if not opening.done():
                opening.cancel()
            elif not opening.cancelled() and opening.exception() is None:
                opening.result().close()
        self._connections.clear()

    async def retry(
        self, operation: Callable[[], Awaitable[T]], *, timeout_s: float | None = None
    ) -> T:
        """Run the operation, with retries and fresh metadata after errors that may pass."""
        deadline = time.monotonic() + (self._retry_timeout_s if timeout_s is None else timeout_s)
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await operation()
            except WireError as error:
                if not error.may_pass or time.monotonic() + pause_s > deadline:
                    raise
            self.forget_metadata()
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    def forget_metadata(self) -> None:
        """Look up leaders and coordinators again."""
        self._topics.clear()
        self._coordinators.clear()

    async def topics(self, names: Collection[str] | None = None) -> dict[str, Topic]:
        """The named topics that exist, or all topics; always fresh."""
        return await self.retry(lambda: self._ask_topics(names))

    async def topic(self, name: str) -> Topic:
        """Cached. Raises UNKNOWN_TOPIC_OR_PARTITION if it does not exist."""
        known = self._known(name)
        if known is None:
            async with self._asking:
                known = self._known(name) or (await self._ask_topics([name])).get(name)
        if known is None:
            raise BrokerError(ErrorCode.unknown_topic_or_partition, f"topic {name}")
        return known

    async def topic_to_write(self, name: str) -> Topic:
        """The topic, created if missing and the cluster auto-creates topics.

        Raises UNKNOWN_TOPIC_OR_PARTITION or LEADER_NOT_AVAILABLE, also while it is being created.
        """
        known = self._known(name)
        if known is None:
            async with self._asking:
                known = self._known(name)
                if known is None:
                    known = (await self._ask_topics([name], create_missing=True))[name]
        return known

    async def leader(self, topic_partition: TopicPartition) -> Connection:
        return await self.connection(await self._leader_address(topic_partition))

    async def ask_leaders(
        self,
        wanted: Mapping[TopicPartition, T],
        request: Callable[[Mapping[TopicPartition, T]], Any],
        results: Callable[[Any], dict[TopicPartition, R | BrokerError]],
    ) -> dict[TopicPartition, R]:
        """As `client.wire.cluster.Cluster.ask_leaders`."""
        found: dict[TopicPartition, R] = {}

        async def ask_what_is_missing() -> None:
            by_leader: dict[Connection, dict[TopicPartition, T]] = {}
            for topic_partition, value in wanted.items():
                if topic_partition not in found:
                    leader = await self.leader(topic_partition)
                    by_leader.setdefault(leader, {})[topic_partition] = value
            problem: BrokerError | None = None
            for leader, asked in by_leader.items():
                given = results(await leader.call(request(asked)))
                problem = keep_results(found, asked, given) or problem
            if problem is not None:
                raise problem

        await self.retry(ask_what_is_missing)
        return found

    async def own_connection_to_leader(self, topic_partition: TopicPartition) -> Connection:
        """A connection that the caller closes, for requests that wait."""
        return await self._open(await self._leader_address(topic_partition))

    async def node(self, node_id: int) -> Connection:
        """The shared connection to a broker."""
        return await self.connection(await self._address(node_id))

    async def own_connection(self, node_id: int) -> Connection:
        """A connection to a broker that the caller closes, for requests that wait."""
        return await self._open(await self._address(node_id))

    async def coordinator(self, kind: i8, key: str) -> Connection:
        """Cached."""
        if (kind, key) not in self._coordinators:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
            found = expect_one((await (await self.any_broker()).call(request)).coordinators)
            validate_answer(found.error_code, f"the coordinator of {key}")
            _make_room(self._coordinators)
            self._coordinators[kind, key] = found.host, found.port
        return await self.connection(self._coordinators[kind, key])

    async def any_broker(self) -> Connection:
        for opening in self._connections.values():
            if _is_open(opening):
                return opening.result()
        reasons = []
        for address in dict.fromkeys([*self._addresses.values(), *self._bootstrap]):
            try:
                return await self.connection(address)
            except WireError as error:
                if not error.may_pass:
                    raise
                reasons.append(str(error))
        raise Unreachable("; ".join(reasons))

    async def controller(self) -> Connection:
        """The broker that creates topics."""
        response = await self._ask_metadata(())
        address = self._addresses.get(response.controller_id)
        return await (self.any_broker() if address is None else self.connection(address))

    async def every_broker(self) -> dict[int, Connection]:
        """Connections to all current brokers, by node id."""
        await self._ask_metadata(())
        return {
            node_id: await self.connection(address)
            for node_id, address in list(self._addresses.items())
        }

    async def broker_ids(self) -> list[int]:
        """Ids of the current brokers."""
        await self._ask_metadata(())
        return sorted(self._addresses)

    async def connection(self, address: Address) -> Connection:
        """The shared connection to a broker named in some response."""
        opening = self._connections.get(address)
        if opening is None or (opening.done() and not _is_open(opening)):
            opening = asyncio.ensure_future(self._open(address))
            self._connections[address] = opening
        # Cancelling one caller must not affect the others.
        return await asyncio.shield(opening)

    def _known(self, name: str) -> Topic | None:
        asked_at, topic = self._topics.get(name, (0.0, None))
        return topic if time.monotonic() - asked_at < METADATA_AGE_S_MAX else None

    async def _leader_address(self, topic_partition: TopicPartition) -> Address:
        topic = await self.topic(topic_partition.topic)
        return leader_address(topic, topic_partition, self._addresses)

    async def _address(self, node_id: int) -> Address:
        if node_id not in self._addresses:
            await self._ask_metadata(())
        if node_id not in self._addresses:
            raise BrokerError(ErrorCode.broker_not_available, f"node {node_id}")
        return self._addresses[node_id]

    async def _ask_topics(
        self, names: Collection[str] | None, *, create_missing: bool = False
    ) -> dict[str, Topic]:
        response = await self._ask_metadata(names, create_missing=create_missing)
        found = topics_in(response, create_missing=create_missing)
        _make_room(self._topics)
        now = time.monotonic()
        self._topics |= {name: (now, topic) for name, topic in found.items()}
        return found

    async def _ask_metadata(
        self, names: Collection[str] | None, *, create_missing: bool = False
    ) -> Any:
        request = metadata_request(names, create_missing=create_missing)
        response = await (await self.any_broker()).call(request)
        self._addresses = {
            broker.node_id: (broker.host, broker.port) for broker in response.brokers
        }
        return response

    async def _open(self, address: Address) -> Connection:
        return await Connection.open(
            *address,
            client_id=self._client_id,
            timeout_s=self._timeout_s,
            security=self._security,
        )


def _is_open(opening: "asyncio.Task[Connection]") -> bool:
    return (
        opening.done()
        and not opening.cancelled()
        and opening.exception() is None
        and not opening.result().closed
    )


def _make_room(remembered: dict[Any, Any]) -> None:
    if len(remembered) >= REMEMBERED_MAX:
        remembered.clear()
