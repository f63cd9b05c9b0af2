"""The cluster as seen by a client on one of its listeners."""

from collections.abc import Container, Iterable
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
    """Brokers with the listener, by id; fenced ones only if `fenced` or listed in `also`."""
    return [
        BrokerAddress(broker, end_point.host, i32(end_point.port))
        for _, broker in sorted(image.brokers.items())
        for end_point in broker.end_points
        if end_point.name == listener_name
        and (fenced or not broker.fenced or broker.broker_id in also)
    ]


class Reachable:
    """The brokers that a client can reach and that are not fenced."""

    def __init__(self, image: MetadataImage, listed: Iterable[BrokerAddress]) -> None:
        self._image = image
        brokers = [address.broker for address in listed]
        self._listed = {broker.broker_id for broker in brokers}
        self._online = {broker.broker_id for broker in brokers if not broker.fenced}

    def leader(self, partition: PartitionRecord) -> BrokerId:
        return partition.leader if partition.leader in self._listed else BrokerId(NO_LEADER)

    def error(self, partition: PartitionRecord) -> ErrorCode:
        if partition.leader in self._listed:
            return ErrorCode.none
        is_known = partition.leader in self._image.brokers
        return ErrorCode.listener_not_found if is_known else ErrorCode.leader_not_available

    def online(self, replicas: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
        return tuple(replica for replica in replicas if replica in self._online)

    def offline(self, replicas: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
        return tuple(replica for replica in replicas if replica not in self._online)
