"""What the five APIs of the share coordinator have in common.

Each names a group and share-partitions of it, which are answered one by one. They come from other
brokers: from the leaders of the partitions, and from the coordinator of the group.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from kio.static.primitive import i32

from ottla.groups.share.state_coordinator import SharePartitionKey
from ottla.handlers.broker import Broker
from ottla.protocol.errors import ApiError, ErrorCode

R = TypeVar("R")


class PartitionOf(Protocol):
    """What a request says about a share-partition."""

    @property
    def partition(self) -> i32: ...


class Outcome(NamedTuple):
    partition: i32
    value: Any  # None where there is an error.
    error: ApiError | None

    @property
    def error_code(self) -> ErrorCode:
        return ErrorCode.none if self.error is None else self.error.code

    @property
    def error_message(self) -> str | None:
        return None if self.error is None else self.error.message


Begun = Mapping[UUID | None, Sequence[tuple[i32, "Awaitable[Any] | ApiError"]]]


def begin_each(request: Any, begin: Callable[[SharePartitionKey, Any], Awaitable[R]]) -> Begun:
    """Begin with each share-partition at once, in the order of the request.

    As in Kafka, a request without a group is answered without a word.
    """
    if not request.group_id:
        return {}
    return {
        topic.topic_id: [
            (data.partition, _begun(request.group_id, topic.topic_id, data, begin))
            for data in topic.partitions
        ]
        for topic in request.topics
        if topic.partitions
    }


def _begun(
    group_id: str,
    topic_id: UUID | None,
    data: PartitionOf,
    begin: Callable[[SharePartitionKey, Any], Awaitable[R]],
) -> Awaitable[R] | ApiError:
    try:
        if data.partition < 0:
            raise ApiError(ErrorCode.invalid_request, f"{data.partition} is not a partition")
        return begin(SharePartitionKey(group_id, topic_id or UUID(int=0), data.partition), data)
    except ApiError as error:
        return error


async def outcomes(begun: Begun) -> list[tuple[UUID | None, list[Outcome]]]:
    """By topic, in the order of the request."""
    return [
        (topic_id, [await _outcome(*each) for each in partitions])
        for topic_id, partitions in begun.items()
    ]


async def _outcome(partition: i32, begun: Awaitable[Any] | ApiError) -> Outcome:
    try:
        if isinstance(begun, ApiError):
            raise begun
        return Outcome(partition, await begun, None)
    except ApiError as error:
        return Outcome(partition, None, error)


def refusals(request: Any, error: ApiError) -> list[tuple[UUID | None, list[Outcome]]]:
    """The same error for every share-partition of a request."""
    return [
        (topic.topic_id, [Outcome(data.partition, None, error) for data in topic.partitions])
        for topic in request.topics
    ]


def validate_exists(broker: Broker, key: SharePartitionKey) -> None:
    name = broker.image.topic_name(key.topic_id)
    count = None if name is None else broker.image.partition_count(name)
    if count is None or key.partition >= count:
        raise ApiError(
            ErrorCode.unknown_topic_or_partition,
            f"there is no partition {key.partition} of topic {key.topic_id}",
        )
