"""The cluster as a client sees it, who came in by one of its listeners."""

from collections.abc import Container
from typing import NamedTuple

from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER, PartitionRecord, RegisterBrokerRecord
from ottla.protocol.errors import ErrorCode


class BrokerAddress(NamedTuple):
    broker: RegisterBrokerRecord
    host: str
    port: i32


def addresses(
    image: MetadataImage,
    listener_name: str,
    *,
    fenced: bool = False,
    also: Container[int] = (),
) -> list[BrokerAddress]:
    """Brokers that have the listener, by id; of those that are fenced all, or only some."""
    return [
        BrokerAddress(broker, end_point.host, i32(end_point.port))
        for _, broker in sorted(image.brokers.items())
        for end_point in broker.end_points
        if end_point.name == listener_name
        and (fenced or not broker.fenced or broker.broker_id in also)
    ]


def partition_error(partition: PartitionRecord, reachable: set[BrokerId]) -> ErrorCode:
    if partition.leader == NO_LEADER:
        return ErrorCode.leader_not_available
    return ErrorCode.none if partition.leader in reachable else ErrorCode.listener_not_found
