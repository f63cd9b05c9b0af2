"""The common part of the five APIs of the share coordinator.

Each names a group and share-partitions, which are answered one by one. Requests come from other
brokers: from the leaders of the partitions, and from the coordinator of the group.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from kio.static.primitive import i32

from ottla.groups.share.state_coordinator import SharePartitionKey
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass

R = TypeVar("R")
T = TypeVar("T")


class PartitionOf(Protocol):
    """A share-partition in a request."""

    @property
    def partition(self) -> i32: ...


class Outcome(NamedTuple):
    partition: i32
    value: Any  # None with an error.
    error: ApiError | None

    @property
    def error_code(self) -> ErrorCode:
        return ErrorCode.none if self.error is None else self.error.code

    @property
    def error_message(self) -> str | None:
        return None if self.error is None else self.error.message


_Begun = Mapping[UUID | None, Sequence[tuple[i32, "Awaitable[Any] | ApiError"]]]
_Outcomes = Iterable[tuple[UUID | None, Iterable[Outcome]]]


@dataclass(frozen=True, slots=True)
class StateApi(Generic[R]):
    """The handler of one API. Responses consist of topics, and these of share-partitions."""

    # Starts what the API does with a share-partition.
    begin: Callable[[Broker, SharePartitionKey, Any], Awaitable[object]]
    response: Callable[..., R]
    topic: Callable[..., object]
    partition: Callable[[Outcome], object]

    def handle(self, broker: Broker, _: RequestContext, request: Any) -> Awaitable[R]:
        return self._finish(_begin_each(request, partial(self.begin, broker)))

    def error_response(self, request: Any, error: ApiError) -> R:
        """The same error for every share-partition in the request."""
        return self._respond(
            (topic.topic_id, [Outcome(data.partition, None, error) for data in topic.partitions])
            for topic in request.topics
        )

    async def _finish(self, begun: _Begun) -> R:
        return self._respond(
            [
                (topic_id, [await _outcome(*each) for each in partitions])
                for topic_id, partitions in begun.items()
            ]
        )

    def _respond(self, topics: _Outcomes) -> R:
        return self.response(
            results=tuple(
                self.topic(topic_id=topic_id, partitions=tuple(map(self.partition, found)))
                for topic_id, found in topics
            )
        )


def only_error(partition_result: Callable[..., T]) -> Callable[[Outcome], T]:
    """For APIs that report nothing else about a share-partition."""
    return lambda outcome: partition_result(
        partition=outcome.partition,
        error_code=outcome.error_code,
        error_message=outcome.error_message,
    )


def _begin_each(request: Any, begin: Callable[[SharePartitionKey, Any], Awaitable[R]]) -> _Begun:
    """Start all share-partitions at once, in request order.

    As in Kafka, a request without a group gets an empty response.
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


async def _outcome(partition: i32, begun: Awaitable[Any] | ApiError) -> Outcome:
    try:
        if isinstance(begun, ApiError):
            raise begun
        return Outcome(partition, await begun, None)
    except ApiError as error:
        return Outcome(partition, None, error)


def validate_exists(broker: Broker, key: SharePartitionKey) -> None:
    name = broker.image.topic_name(key.topic_id)
    count = None if name is None else broker.image.partition_count(name)
    if count is None or key.partition >= count:
        raise ApiError(
            ErrorCode.unknown_topic_or_partition,
            f"there is no partition {key.partition} of topic {key.topic_id}",
        )
