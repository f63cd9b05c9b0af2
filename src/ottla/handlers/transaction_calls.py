"""How handlers call a transactional id's coordinator."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.handlers.broker import Broker
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.transactions.producer_ids import ProducerIdNeeded

if TYPE_CHECKING:
    from ottla.transactions.coordinator import TransactionMachine

R = TypeVar("R")

# Called with the machine, now_ms, and a new producer id if the operation requested one.
Operation = Callable[["TransactionMachine", int, int | None], Result[R]]

# A client that gets CONCURRENT_TRANSACTIONS waits before it retries, usually longer than the
# previous transaction takes to complete; so the response waits instead.
COMPLETION_WAIT_S: Final = 1.0


async def call(
    broker: Broker,
    transactional_id: str,
    operation: Operation[R],
    wait_s: float = COMPLETION_WAIT_S,
) -> R:
    """ApiError unless the coordinator is here."""
    try:
        return await call_once(broker, transactional_id, operation)
    except ApiError as error:
        if error.code is not ErrorCode.concurrent_transactions:
            raise
    await broker.transactions.completion.wait(transactional_id, wait_s)
    return await call_once(broker, transactional_id, operation)


async def call_once(broker: Broker, transactional_id: str, operation: Operation[R]) -> R:
    """Does not wait for a transaction that is being completed."""
    runtime = broker.transactions.coordinators.find(transactional_id)
    try:
        return await runtime.submit(lambda machine, now_ms: operation(machine, now_ms, None))
    except ProducerIdNeeded:
        new_id = await broker.producer_ids.next_id()
    return await runtime.submit(lambda machine, now_ms: operation(machine, now_ms, new_id))


def fenced_code(code: ErrorCode, api_version: int, *, since: int) -> ErrorCode:
    """PRODUCER_FENCED was INVALID_PRODUCER_EPOCH before a version of each API."""
    if code is ErrorCode.producer_fenced and api_version < since:
        return ErrorCode.invalid_producer_epoch
    return code
