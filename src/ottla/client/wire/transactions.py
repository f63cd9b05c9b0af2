"""List and end other producers' transactions, many at once.

Anyone who knows the transactional id, producer id and epoch can end a transaction. With only the
transactional id it can be aborted, which fences its producer.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple, Self

from kio.schema.list_transactions.v2.request import ListTransactionsRequest

from ottla.client.wire.cluster import Cluster, CoordinatorType
from ottla.client.wire.connection import Connection, Sent
from ottla.client.wire.errors import BrokerError, WireError, validate_answer
from ottla.client.wire.producing import Producer, end_request, init_transactions
from ottla.protocol.errors import ErrorCode

ONGOING: Final = "Ongoing"

_PATTERN_VERSION = 2
_FENCING_TIMEOUT_MS = 60_000
_IN_FLIGHT_MAX = 100  # Unanswered requests per connection.


class OpenTransaction(NamedTuple):
    transactional_id: str
    producer: Producer


def list_open_ids(cluster: Cluster, pattern: str) -> list[str]:
    """Transactional ids with an open transaction that match the whole pattern."""
    return cluster.retry(lambda: _list_open_ids(cluster, pattern))


class OpenIdsQuestion:
    """`list_open_ids` in two steps: sends the requests on entry, and `answer` reads the responses.

    Brokers work in the meantime. The requests go to the known brokers; if one fails, `answer` asks
    all current brokers.
    """

    def __init__(self, cluster: Cluster, pattern: str) -> None:
        self._cluster = cluster
        self._pattern = pattern
        self._connections: list[Connection] = []
        self._sent: list[Sent] = []

    def __enter__(self) -> Self:
        try:
            self._connections = self._cluster.own_connections_to_brokers()
            for connection in self._connections:
                self._sent.append(connection.send(_list_request(connection, self._pattern)))
        except WireError:
            self._close()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def answer(self) -> list[str]:
        """Call once."""
        pairs = zip(self._connections, self._sent, strict=True)
        try:
            responses = [connection.receive(sent) for connection, sent in pairs]
            found = _ids_in(responses, self._pattern)
        except WireError:
            self._close()
        if not self._connections:
            return list_open_ids(self._cluster, self._pattern)
        while self._connections:
            self._cluster.give_back(self._connections.pop())
        return found

    def _close(self) -> None:
        while self._connections:
            self._connections.pop().close()
        self._sent.clear()


def commit_transactions(cluster: Cluster, transactions: Collection[OpenTransaction]) -> None:
    """Return once all commits are decided. A transaction that is already committed is no error.

    Neither is a transactional id that the coordinator has forgotten: it never forgets one with an
    open transaction.
    """
    _end_all(cluster, transactions, commit=True, done=_COMMITTED)


def abort_transactions(cluster: Cluster, transactions: Collection[OpenTransaction]) -> None:
    """Return once all aborts are decided. A transaction that is already aborted is no error."""
    _end_all(cluster, transactions, commit=False, done=_ABORTED)


def abort_by_ids(cluster: Cluster, transactional_ids: Iterable[str]) -> None:
    """Abort the open transactions of these ids and fence their producers."""
    for transactional_id in transactional_ids:
        init_transactions(cluster, transactional_id, _FENCING_TIMEOUT_MS)


_COMMITTED = frozenset({ErrorCode.none, ErrorCode.invalid_producer_id_mapping})
_ABORTED = _COMMITTED | {
    ErrorCode.invalid_txn_state,  # No transaction was ever begun.
    ErrorCode.producer_fenced,
    ErrorCode.invalid_producer_epoch,
}


def _list_open_ids(cluster: Cluster, pattern: str) -> list[str]:
    responses = [
        connection.call(_list_request(connection, pattern)) for connection in cluster.every_broker()
    ]
    return _ids_in(responses, pattern)


def _list_request(connection: Connection, pattern: str) -> ListTransactionsRequest:
    newer = connection.version(ListTransactionsRequest.__api_key__) >= _PATTERN_VERSION
    return ListTransactionsRequest(
        state_filters=(ONGOING,), transactional_id_pattern=pattern if newer else None
    )


def _ids_in(responses: Iterable[Any], pattern: str) -> list[str]:
    found = []
    for response in responses:
        validate_answer(response.error_code, "the list of transactions")
        found += [state.transactional_id for state in response.transaction_states]
    whole = re.compile(pattern)
    return [transactional_id for transactional_id in found if whole.fullmatch(transactional_id)]


def _end_all(
    cluster: Cluster,
    transactions: Collection[OpenTransaction],
    *,
    commit: bool,
    done: frozenset[ErrorCode],
) -> None:
    remaining = list(transactions)

    def end_what_remains() -> None:
        problem: BrokerError | None = None
        for connection, portion in _portions(cluster, list(remaining)):
            for transaction, code in _end_portion(connection, portion, commit):
                if code in done:
                    remaining.remove(transaction)
                else:
                    what = f"the end of transaction {transaction.transactional_id}"
                    problem = _worse(problem, BrokerError(code, what))
        if problem is not None:
            raise problem

    cluster.retry(end_what_remains)


def _worse(first: BrokerError | None, second: BrokerError) -> BrokerError:
    """A permanent error takes precedence over one that may pass."""
    if first is not None and not first.may_pass:
        return first
    return second


def _portions(
    cluster: Cluster, transactions: Sequence[OpenTransaction]
) -> Iterable[tuple[Connection, list[OpenTransaction]]]:
    if not transactions:
        return
    by_connection: dict[Connection, list[OpenTransaction]] = defaultdict(list)
    found = cluster.coordinators(
        CoordinatorType.TRANSACTION, [item.transactional_id for item in transactions]
    )
    for transaction in transactions:
        by_connection[found[transaction.transactional_id]].append(transaction)
    for connection, group in by_connection.items():
        for start in range(0, len(group), _IN_FLIGHT_MAX):
            yield connection, group[start : start + _IN_FLIGHT_MAX]


def _end_portion(
    connection: Connection, transactions: Sequence[OpenTransaction], commit: bool
) -> list[tuple[OpenTransaction, ErrorCode]]:
    requests = [end_request(*transaction, commit=commit) for transaction in transactions]
    sent = [connection.send(request) for request in requests]
    codes = [connection.receive(each).error_code for each in sent]
    return list(zip(transactions, codes, strict=True))
