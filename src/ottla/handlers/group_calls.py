"""How the handlers of group APIs call the coordinator of a group."""

from asyncio import Future
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ottla.groups.caller import Caller
from ottla.groups.coordinator import GroupMachine
from ottla.handlers.broker import Broker, RequestContext
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError
from ottla.security import acls

R = TypeVar("R")
T = TypeVar("T")

Operation = Callable[[GroupMachine, int], Result[R]]


def caller_of(context: RequestContext) -> Caller:
    """Who asks, as Kafka shows it when a group is described."""
    access = context.access
    return Caller(
        context.api_version,
        context.client_id or "",
        f"/{context.session.peer_address}",
        lambda topic: access.may(acls.Operation.DESCRIBE, acls.ResourceType.TOPIC, topic),
    )


def submit(broker: Broker, group_id: str, operation: Operation[R]) -> "Future[R]":
    """ApiError unless the coordinator of the group is here."""
    return broker.groups.find(group_id).submit(operation)


def call(broker: Broker, group_id: str, operation: Operation[R]) -> R | Awaitable[R]:
    """The answer, at once where nothing has to be waited for."""
    return broker.groups.find(group_id).call(operation)


async def call_each(
    items: Sequence[T],
    begin: "Callable[[T], Future[R]]",
    on_error: Callable[[T, ApiError], R],
) -> list[R]:
    """One answer for each item, in this order; the refusal of one does not touch the others."""
    begun = [_begin(item, begin) for item in items]
    answers = []
    for item, one in zip(items, begun, strict=True):
        if isinstance(one, ApiError):
            answers.append(on_error(item, one))
            continue
        try:
            answers.append(await one)
        except ApiError as error:
            answers.append(on_error(item, error.with_traceback(None)))
    return answers


def _begin(item: T, begin: "Callable[[T], Future[R]]") -> "Future[R] | ApiError":
    try:
        return begin(item)
    except ApiError as error:
        return error
