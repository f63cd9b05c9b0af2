"""Where `ottla groups reset-offsets` moves the offsets of a group to."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ottla.cli.connection import Connection
from ottla.cli.errors import UsageError
from ottla.cli.start_position import parse_timestamp

Place = tuple[str, int]
Offsets = Mapping[Place, int]


class Ranges(NamedTuple):
    """What the partitions hold now."""

    starts: Offsets
    ends: Offsets


class Target(Protocol):
    def offsets(
        self, partitions: "Partitions", places: Sequence[Place], committed: Offsets
    ) -> Offsets:
        """The wished offset of each place; it may lie outside of what the partition holds."""
        ...


class Partitions:
    """The offsets of partitions, asked of the broker."""

    def __init__(self, connection: Connection, admin: AdminClient) -> None:
        self._connection = connection
        self._admin = admin

    def offsets(self, places: Sequence[Place], spec: OffsetSpec) -> Offsets:
        if not places:
            return {}
        futures = self._admin.list_offsets({TopicPartition(*place): spec for place in places})
        return {
            (place.topic, place.partition): self._connection.result(future, of=place.topic).offset
            for place, future in futures.items()
        }

    def ranges(self, places: Sequence[Place]) -> Ranges:
        starts = self.offsets(places, OffsetSpec.earliest())
        return Ranges(starts, self.offsets(places, OffsetSpec.latest()))


class ToEarliest:
    def offsets(
        self, partitions: Partitions, places: Sequence[Place], committed: Offsets
    ) -> Offsets:
        del committed
        return partitions.offsets(places, OffsetSpec.earliest())


class ToLatest:
    def offsets(
        self, partitions: Partitions, places: Sequence[Place], committed: Offsets
    ) -> Offsets:
        del committed
        return partitions.offsets(places, OffsetSpec.latest())


class ToOffset(NamedTuple):
    offset: int

    def offsets(
        self, partitions: Partitions, places: Sequence[Place], committed: Offsets
    ) -> Offsets:
        del partitions, committed
        return dict.fromkeys(places, self.offset)


class ToTimestamp(NamedTuple):
    timestamp_ms: int

    def offsets(
        self, partitions: Partitions, places: Sequence[Place], committed: Offsets
    ) -> Offsets:
        """The end, where nothing is as new."""
        del committed
        found = partitions.offsets(places, OffsetSpec.for_timestamp(self.timestamp_ms))
        missing = [place for place, offset in found.items() if offset < 0]
        return {**found, **partitions.offsets(missing, OffsetSpec.latest())}


class ShiftBy(NamedTuple):
    records: int

    def offsets(
        self, partitions: Partitions, places: Sequence[Place], committed: Offsets
    ) -> Offsets:
        """A partition without an offset has nothing to shift and stays as it is."""
        del partitions
        return {
            place: max(0, committed[place] + self.records) for place in places if place in committed
        }


def parse_target(
    *,
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_timestamp: str | None,
    shift_by: int | None,
) -> Target:
    wishes: list[Target] = []
    if to_earliest:
        wishes.append(ToEarliest())
    if to_latest:
        wishes.append(ToLatest())
    if to_offset is not None:
        wishes.append(_to_offset(to_offset))
    if to_timestamp is not None:
        wishes.append(ToTimestamp(parse_timestamp(to_timestamp)))
    if shift_by is not None:
        wishes.append(ShiftBy(shift_by))
    if len(wishes) != 1:
        raise UsageError(
            "give one of --to-earliest, --to-latest, --to-offset, --to-timestamp and --shift-by"
        )
    return wishes[0]


def _to_offset(offset: int) -> Target:
    if offset < 0:
        raise UsageError(f"--to-offset {offset} is less than 0")
    return ToOffset(offset)
