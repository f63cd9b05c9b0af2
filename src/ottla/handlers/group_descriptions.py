"""The common part of the APIs that describe groups of any type."""

from asyncio import Future
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from kio.schema.types import GroupId

from ottla.groups.coordinator import GroupMachine
from ottla.handlers.authorization import authorized_operations, denied_topics, require
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.group_calls import call_each
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation, ResourceType

_UNDESCRIBABLE_TOPICS: Final = ApiError(
    ErrorCode.topic_authorization_failed,
    "The group has described topic(s) that the client is not authorized to describe.",
)


class _Described(Protocol):
    @property
    def error_code(self) -> ErrorCode: ...

    @property
    def group_id(self) -> GroupId: ...


G = TypeVar("G", bound=_Described)


async def describe_each(
    broker: Broker,
    context: RequestContext,
    group_ids: Sequence[GroupId],
    describe: Callable[[GroupMachine, GroupId], Result[tuple[G, ...]]],
    *,
    failed: Callable[[GroupId, ApiError], G],
    topics_of: Callable[[G], Iterable[str]],
    with_operations: bool,
) -> tuple[G, ...]:
    """One description per group, in order; `failed` creates those of rejected groups.

    Reveals nothing about a group if the caller may not describe one of its topics.
    """

    def begin(group_id: GroupId) -> "Future[tuple[G, ...]]":
        require(context, Operation.DESCRIBE, ResourceType.GROUP, group_id)
        return broker.groups.find(group_id).submit(lambda machine, _: describe(machine, group_id))

    def shown(group: G) -> G:
        if denied_topics(context, Operation.DESCRIBE, topics_of(group)):
            return failed(group.group_id, _UNDESCRIBABLE_TOPICS)
        return _with_operations(context, group) if with_operations else group

    answers = await call_each(group_ids, begin, lambda group_id, error: (failed(group_id, error),))
    return tuple(shown(group) for (group,) in answers)


@dataclass(frozen=True, slots=True)
class DescribeApi(Generic[G]):
    """The handler of an API that describes groups of one of the newer types."""

    response: Callable[..., object]
    describe: Callable[[GroupMachine, tuple[GroupId, ...]], Result[tuple[G, ...]]]
    describe_missing: Callable[[GroupId, ApiError], G]
    topics_of: Callable[[G], Iterable[str]]

    async def handle(self, broker: Broker, context: RequestContext, request: Any) -> object:
        groups = await describe_each(
            broker,
            context,
            request.group_ids,
            lambda machine, group_id: self.describe(machine, (group_id,)),
            failed=self.describe_missing,
            topics_of=self.topics_of,
            with_operations=request.include_authorized_operations,
        )
        return self.response(throttle_time=NO_THROTTLE, groups=groups)

    def error_response(self, request: Any, error: ApiError) -> object:
        groups = tuple(self.describe_missing(group_id, error) for group_id in request.group_ids)
        return self.response(throttle_time=NO_THROTTLE, groups=groups)


def assigned_topics(group: Any) -> set[str]:
    """The topics in the assignments of a group's members."""
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, getattr(member, "target_assignment", None))
        if assignment is not None
        for topic in assignment.topic_partitions
    }


def topology_topics(subtopologies: Iterable[Any]) -> set[str]:
    """The topics that the parts of a streams group's topology read and write."""
    return {
        name
        for part in subtopologies
        for name in (
            *part.source_topics,
            *part.repartition_sink_topics,
            *(topic.name for topic in part.repartition_source_topics),
            *(topic.name for topic in part.state_changelog_topics),
        )
    }


def _with_operations(context: RequestContext, group: G) -> G:
    """Add the operations that the caller may perform on it."""
    if group.error_code is not ErrorCode.none:
        return group
    operations = authorized_operations(context, ResourceType.GROUP, group.group_id)
    described: Any = group
    return cast("G", replace(described, authorized_operations=operations))
