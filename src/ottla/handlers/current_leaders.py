"""The current leader, for a client that asked the wrong broker or has an old epoch (KIP-951)."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.handlers.cluster_view import addresses
from ottla.protocol.errors import ErrorCode
from ottla.protocol.leader_hints import Leader, NodeEndpoint

_MOVED: Final = frozenset({ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch})


def current_leader(
    image: MetadataImage, topic: str | UUID, index: int, error_code: int
) -> Leader | None:
    """None for other errors, or if there is no leader."""
    if error_code not in _MOVED:
        return None
    found = image.topics.get(topic) if isinstance(topic, str) else image.topic_by_id(topic)
    state = None if found is None else found.partitions.get(index)
    if state is None or state.leader == NO_LEADER:
        return None
    return Leader(state.leader, state.leader_epoch)


def leader_endpoints(
    image: MetadataImage, listener_name: str, leader_ids: Collection[int]
) -> list[NodeEndpoint]:
    """Their addresses for the client."""
    return [
        NodeEndpoint(address.broker.broker_id, address.host, address.port, address.broker.rack)
        for address in addresses(image, listener_name)
        if address.broker.broker_id in leader_ids
    ]
