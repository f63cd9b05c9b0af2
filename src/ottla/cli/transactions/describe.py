"""`ottla transactions describe`: one transactional id, and the partitions of its transaction."""

import datetime as dt
from typing import Any

from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.types import TransactionalId

from ottla.cli.broker_call import BrokerCall, check, coordinator
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_json, print_rows
from ottla.cli.parameters import AsJson
from ottla.client.wire.cluster import CoordinatorType
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import in_milliseconds

NEVER_MS = 2**31 - 1  # The timeout of a two-phase transaction.
NO_TIME_BEFORE = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def describe(
    transactional_id: str,
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Show the state of a transactional id and the partitions of its transaction.

    Args:
        transactional_id: The id that the producer was given.
    """
    with coordinator(connection, CoordinatorType.TRANSACTION, transactional_id) as broker:
        document = document_of(described(broker, transactional_id), broker.node_id)
    if as_json:
        print_json(document)
        return
    rows = [{"property": name.replace("_", " "), "value": document[name]} for name in document]
    print_rows(("property", "value"), rows)


def described(broker: BrokerCall, transactional_id: str) -> Any:
    request = DescribeTransactionsRequest(transactional_ids=(TransactionalId(transactional_id),))
    (found,) = broker.call(request).transaction_states
    if found.error_code is ErrorCode.transactional_id_not_found:
        raise CommandError(
            f"there is no transactional id {transactional_id}; `ottla transactions list` shows them"
        )
    check(found.error_code, transactional_id)
    return found


def document_of(found: Any, coordinator: int) -> dict[str, Any]:
    started = found.transaction_start_time
    timeout_ms = in_milliseconds(found.transaction_timeout)
    return {
        "transactional_id": found.transactional_id,
        "coordinator": coordinator,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.transaction_state,
        "timeout_ms": timeout_ms if timeout_ms < NEVER_MS else None,
        "started": started.isoformat() if started >= NO_TIME_BEFORE else None,
        "partitions": [
            f"{topic.topic}-{partition}" for topic in found.topics for partition in topic.partitions
        ],
    }
