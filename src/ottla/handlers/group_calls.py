"""What the handlers of group APIs have in common: their caller, and a call for each group."""

from asyncio import Future
from collections.abc import Callable, Sequence
from typing import TypeVar

from ottla.groups.caller import Caller
from ottla.handlers.broker import RequestContext
from ottla.protocol.errors import ApiError
from ottla.security import acls

R = TypeVar("R")
T = TypeVar("T")


def caller_of(context: RequestContext) -> Caller:
    """The sender, as Kafka shows it when a group is described."""
    access = context.access
    return Caller(
        context.api_version,
        context.client_id or "",
        f"/{context.session.peer_address}",
        lambda topic: access.may(acls.Operation.DESCRIBE, acls.ResourceType.TOPIC, topic),
    )


async def call_each(
    items: Sequence[T],
    begin: "Callable[[T], Future[R]]",
    on_error: Callable[[T, ApiError], R],
) -> list[R]:
    """One response per item, in order; the refusal of one does not affect the others."""
    begun = [_begin(item, begin) for item in items]
    answers = []
    for item, answering in zip(items, begun, strict=True):
        if isinstance(answering, ApiError):
            answers.append(on_error(item, answering))
            continue
        try:
            answers.append(await answering)
        except ApiError as error:
            answers.append(on_error(item, error.with_traceback(None)))
    return answers


def _begin(item: T, begin: "Callable[[T], Future[R]]") -> "Future[R] | ApiError":
    try:
        return begin(item)
    except ApiError as error:
        return error
