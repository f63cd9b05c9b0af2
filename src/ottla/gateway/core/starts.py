"""Where a reader of a topic starts."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.client.wire.offsets import EARLIEST, LATEST
from ottla.gateway.core.event_ids import parse_event_id
from ottla.gateway.core.filters import Filter
from ottla.gateway.core.tails import Source
from ottla.gateway.core.topic_names import validate_topic
from ottla.protocol.errors import ErrorCode


class Start(NamedTuple):
    """By time, except for partitions with an offset; EARLIEST and LATEST count as times."""

    time_ms: int = LATEST
    offset: int | None = None  # In the only partition.
    offsets: Mapping[int, int] = {}


def parse_start(offset: str | None, time: str | None) -> Start:
    """`offset` is latest, earliest, an offset, or an event id. Raises ValueError otherwise."""
    if offset is not None and time is not None:
        raise ValueError("offset and time exclude each other")
    if time is not None:
        return Start(_milliseconds(time))
    match offset:
        case None | "latest":
            return Start()
        case "earliest":
            return Start(EARLIEST)
    if offset.isascii() and offset.isdecimal() and len(offset) < 20:
        return Start(offset=int(offset))
    try:
        return resume(offset)
    except ValueError:
        raise ValueError("offset is latest, earliest, a number, or 0:17,2:4") from None


def resume(event_id: str) -> Start:
    """After an event; partitions missing from its id are new and read from their beginning."""
    return Start(EARLIEST, offsets=parse_event_id(event_id))


async def positions_at(source: Source, topic: str, start: Start, wanted: Filter) -> dict[int, int]:
    """The next offset of each partition to read.

    Raises BrokerError if the topic or partition does not exist, ValueError if one offset is given
    for several partitions.
    """
    validate_topic(topic)
    partitions = _wanted(topic, await source.leaders(topic, fresh=False), wanted)
    if start.offset is not None:
        if len(partitions) != 1:
            raise ValueError(
                f"one offset for {len(partitions)} partitions; say partition=, or offset=0:17,1:4"
            )
        return {partitions[0]: start.offset}
    asked = {TopicPartition(topic, p): start.time_ms for p in partitions if p not in start.offsets}
    found = await source.offsets(asked) if asked else {}
    return {
        p: start.offsets[p] if p in start.offsets else found[TopicPartition(topic, p)]
        for p in partitions
    }


def _wanted(topic: str, partitions: Collection[int], wanted: Filter) -> list[int]:
    for partition in sorted(wanted.partitions - set(partitions)):
        raise BrokerError(ErrorCode.unknown_topic_or_partition, f"partition {topic}-{partition}")
    return wanted.wanted(partitions)


def _milliseconds(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 16:
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("time is in milliseconds since 1970, or 2026-11-17T12:00:00Z") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return max(0, int(found.timestamp() * 1000))
