"""Repairs a damaged replica of the metadata from the other nodes, if these can do without it.

It is set aside only if the quorum of the same cluster has a leader: then a majority of the voters
has every decision, and this node can copy them. Otherwise nothing is changed, and the node does not
start.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kio.schema.types import TopicName
from kio.static.primitive import i32

from ottla.controller.records import NO_LEADER
from ottla.network.peers import PeerUnreachable
from ottla.node.joining import Joining
from ottla.node.node_parts import Parts
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import CLUSTER_METADATA_TOPIC
from ottla.runtime.metadata_damage import last_voters, set_metadata_aside
from ottla.storage.directory_identity import WrongDirectory, lock_directory, read_identity
from ottla.storage.errors import DamagedMetadata
from ottla.storage.filesystem import Filesystem

if TYPE_CHECKING:
    from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest

logger = logging.getLogger(__name__)

_TIMEOUT_MS: Final = 3_000


class MetadataRepair:
    def __init__(self, joining: Joining, parts: Parts) -> None:
        self._joining = joining
        self._parts = parts
        self._directory = parts.directories[0]
        self._filesystem = parts.environment.filesystem

    async def set_aside(
        self, damage: DamagedMetadata, bootstrap: Sequence[Address], *, is_locked: bool
    ) -> list[Address]:
        """Create an empty replica; returns the nodes to copy from. Raises `damage` without any.

        `is_locked` if this process already has the directory's lock.
        """
        in_thread = self._parts.process.in_thread
        cluster_id = await in_thread(_cluster_id, self._filesystem, self._directory)
        voters = await in_thread(last_voters, self._filesystem, self._directory)
        known = [
            Address(endpoint.host, endpoint.port)
            for voter in voters
            if voter.key.id != self._parts.node_id
            for endpoint in voter.endpoints
        ]
        addresses = list(dict.fromkeys((*bootstrap, *known)))
        for address in addresses:
            if cluster_id is not None and await self._has_leader(address, cluster_id):
                break
        else:
            raise damage
        aside = await in_thread(self._set_aside, is_locked)
        logger.error(
            "%s. The quorum has a leader without this node: its damaged metadata is set aside as "
            "%s, and it fetches what the others have before it votes",
            str(damage.cause).partition(". ")[0],
            aside,
        )
        return addresses

    def _set_aside(self, is_locked: bool) -> str:
        filesystem, new_uuid = self._filesystem, self._parts.environment.new_uuid
        lock = None if is_locked else lock_directory(filesystem, self._directory)
        try:
            return set_metadata_aside(filesystem, self._directory, new_uuid(), new_uuid())
        finally:
            if lock is not None:
                lock.release()

    async def _has_leader(self, address: Address, cluster_id: str) -> bool:
        try:
            found = await self._joining.ask(address)
            response = await self._parts.peers.call(
                address, _request(), timeout_ms=_TIMEOUT_MS, purpose="repair"
            )
        except PeerUnreachable:
            return False
        if found.cluster_id != cluster_id or response.error_code is not ErrorCode.none:
            return False
        ((partition,),) = (topic.partitions for topic in response.topics)
        return partition.leader_id not in (NO_LEADER, self._parts.node_id)


def _request() -> "DescribeQuorumRequest":
    from kio.schema.describe_quorum.v2.request import (
        DescribeQuorumRequest,
        PartitionData,
        TopicData,
    )

    partition = PartitionData(partition_index=i32(0))
    topic = TopicData(topic_name=TopicName(CLUSTER_METADATA_TOPIC), partitions=(partition,))
    return DescribeQuorumRequest(topics=(topic,))


def _cluster_id(filesystem: Filesystem, directory: str) -> str | None:
    try:
        identity = read_identity(filesystem, directory)
    except WrongDirectory:
        return None
    return None if identity is None else identity.cluster_id
