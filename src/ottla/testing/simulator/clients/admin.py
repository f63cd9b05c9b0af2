"""A client that changes topics, replicas and members.

Calls raise Unavailable or RefusedError; those called until they are done only return.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_quorum.v2.response import ReplicaState
from kio.schema.remove_raft_voter.v0.request import RemoveRaftVoterRequest
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.static.primitive import i32

from ottla.client.wire.configs import BROKER, alter_request
from ottla.client.wire.nodes import QUORUM_REQUEST, nodes_request
from ottla.client.wire.replicas import elect_request, reassign_request
from ottla.client.wire.topics import create_request, partitions_request
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.clients.client import Client, Unavailable, check

TIMEOUT_MS = 5_000
CALL_TIMEOUT_MS = 2 * TIMEOUT_MS


class Admin:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def until_done(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """However long that takes."""
        while True:
            try:
                await attempt()
                return
            except Unavailable:
                await self.client.back_off()

    # Topics.

    async def create_topic(
        self, name: str, *, partitions_count: int, replication_factor: int
    ) -> None:
        request = create_request(
            name, partitions=partitions_count, replication_factor=replication_factor
        )
        response = await self._call(request)
        (created,) = response.topics
        _check_replication(created.error_code, ErrorCode.topic_already_exists)
        self.client.tell(f"created {name}")

    async def delete_topic(self, topic_id: UUID) -> None:
        """By its id: a request that comes late does not hit the next topic of the name."""
        state = DeleteTopicState(name=None, topic_id=topic_id)
        request = DeleteTopicsRequest(topics=(state,), timeout=milliseconds(TIMEOUT_MS))
        response = await self._call(request)
        (deleted,) = response.responses
        if deleted.error_code is not ErrorCode.unknown_topic_id:
            check(deleted.error_code)
        self.client.tell(f"deleted {topic_id}")

    async def create_partitions(self, topic: str, count: int) -> None:
        response = await self._call(partitions_request(topic, count))
        (created,) = response.results
        _check_replication(created.error_code, ErrorCode.invalid_partitions)
        self.client.tell(f"{topic} has {count} partitions")

    async def set_config(
        self, key: str, value: str, name: str = "", resource_type: int = BROKER
    ) -> None:
        """Of all brokers, or of the named one, or of another resource."""
        request = alter_request({(resource_type, name): {key: value}})
        response = await self._call(request)
        (altered,) = response.responses
        check(altered.error_code)

    # Replicas.

    async def reassign(self, wanted: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        """None takes a reassignment back."""
        response = await self._call(reassign_request(wanted))
        check(response.error_code)
        for topic in response.responses:
            for each in topic.partitions:
                _check_replication(each.error_code, ErrorCode.no_reassignment_in_progress)

    async def elect_preferred_leaders(self) -> None:
        response = await self._call(elect_request(None))
        check(response.error_code)

    async def replicas(self) -> dict[TopicPartition, tuple[int, ...]]:
        """As some broker knows them."""
        await self.client.refresh()
        return self.client.replicas

    # Members.

    async def is_fenced(self, broker_id: int) -> bool:
        """Also if it is not known any more."""
        response = await self._call(nodes_request(fenced=True))
        check(response.error_code)
        return all(each.is_fenced for each in response.brokers if each.broker_id == broker_id)

    async def voters(self) -> list[ReplicaState]:
        response = await self._call(QUORUM_REQUEST)
        check(response.error_code)
        ((described,),) = (each.partitions for each in response.topics)
        check(described.error_code)
        return list(described.current_voters)

    async def remove_voters(self, broker_id: int) -> None:
        """Whatever votes under this id."""
        for voter in await self.voters():
            if voter.replica_id == broker_id:
                request = RemoveRaftVoterRequest(
                    cluster_id=None,
                    voter_id=i32(voter.replica_id),
                    voter_directory_id=voter.replica_directory_id,
                )
                response = await self._call(request)
                if response.error_code is not ErrorCode.voter_not_found:
                    check(response.error_code)

    async def unregister(self, broker_id: int) -> None:
        request = UnregisterBrokerRequest(broker_id=BrokerId(broker_id))
        response = await self._call(request)
        if response.error_code is not ErrorCode.broker_id_not_registered:
            check(response.error_code)

    async def _call(self, request: object) -> Any:
        return await self.client.call_any(request, timeout_ms=CALL_TIMEOUT_MS)


def _check_replication(code: ErrorCode, *done: ErrorCode) -> None:
    """`done` is what is said the second time. Brokers may be too few for now."""
    if code in {ErrorCode.invalid_replication_factor, ErrorCode.invalid_replica_assignment}:
        raise Unavailable(code.name)
    if code not in done:
        check(code)


def without(replicas: Sequence[int], leaving: int, others: Iterable[int], count: int) -> list[int]:
    """So many replicas, with another broker instead of one that leaves if there are too few.

    Replicas of which some are on their way may be more.
    """
    staying = [each for each in replicas if each != leaving]
    return [*staying, *(each for each in others if each not in replicas)][:count]
