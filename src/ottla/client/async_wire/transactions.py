"""Transactions step by step: a producer, its partitions, the end."""

from collections.abc import Collection

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.connection import Connection
from ottla.client.wire.cluster import CoordinatorType, TopicPartition
from ottla.client.wire.errors import validate_answer
from ottla.client.wire.producing import (
    Producer,
    add_partitions_request,
    end_request,
    init_request,
    validate_added,
)


async def init_transactions(
    cluster: Cluster, transactional_id: str, transaction_timeout_ms: int
) -> Producer:
    """The producer of a transactional id. Fences earlier ones and ends their open transactions."""
    request = init_request(transactional_id, transaction_timeout_ms)

    async def init() -> Producer:
        response = await (await _coordinator(cluster, transactional_id)).call(request)
        validate_answer(response.error_code, f"a producer id for {transactional_id}")
        return Producer(response.producer_id, response.producer_epoch)

    return await cluster.retry(init)


async def add_partitions(
    cluster: Cluster,
    transactional_id: str,
    producer: Producer,
    topic_partitions: Collection[TopicPartition],
) -> None:
    """Before the first batch to each of them."""
    request = add_partitions_request(transactional_id, producer, topic_partitions)

    async def add() -> None:
        response = await (await _coordinator(cluster, transactional_id)).call(request)
        validate_added(response, transactional_id)

    await cluster.retry(add)


async def end_transaction(
    cluster: Cluster, transactional_id: str, producer: Producer, *, commit: bool
) -> None:
    """Commit or abort; repeating the same decision is not an error."""
    request = end_request(transactional_id, producer, commit=commit)

    async def end() -> None:
        response = await (await _coordinator(cluster, transactional_id)).call(request)
        validate_answer(response.error_code, f"the end of transaction {transactional_id}")

    await cluster.retry(end)


async def _coordinator(cluster: Cluster, transactional_id: str) -> Connection:
    return await cluster.coordinator(CoordinatorType.TRANSACTION, transactional_id)
