"""`ottla transactions abort`: end what a producer left open, and fence the producer."""

import time

from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.types import TransactionalId

from ottla.cli.broker_call import check, coordinator
from ottla.cli.connection import DEFAULT_CONNECTION, TIMEOUT_S, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_line
from ottla.cli.transactions.describe import described
from ottla.client.wire.cluster import CoordinatorType
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds

PAUSE_S = 0.1


def abort(transactional_id: str, /, *, connection: Connection = DEFAULT_CONNECTION) -> None:
    """Abort the open transaction of a transactional id; its producer is fenced.

    Args:
        transactional_id: The id that the producer was given.
    """
    with coordinator(connection, CoordinatorType.TRANSACTION, transactional_id) as broker:
        found = described(broker, transactional_id)
        if found.transaction_state != "Ongoing":
            raise CommandError(
                f"{transactional_id} has no open transaction: its state is"
                f" {found.transaction_state}"
            )
        # What a new producer with this id would do: the coordinator aborts before it answers.
        request = InitProducerIdRequest(
            transactional_id=TransactionalId(transactional_id),
            transaction_timeout=milliseconds(1),
        )
        deadline_s = time.monotonic() + TIMEOUT_S
        while (code := broker.call(request).error_code) is not ErrorCode.none:
            if code is not ErrorCode.concurrent_transactions or time.monotonic() > deadline_s:
                check(code, transactional_id)
            time.sleep(PAUSE_S)
    print_line(f"aborted the transaction of {transactional_id}")
