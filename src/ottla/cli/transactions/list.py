"""`ottla transactions list`: the transactional ids, and what state each is in."""

from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.static.primitive import i64

from ottla.cli.broker_call import check, every_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson
from ottla.transactions.state import BY_NAME, TransactionState

COLUMNS = ("transactional_id", "coordinator", "producer_id", "state")
STATES = [name for name, state in BY_NAME.items() if state is not TransactionState.DEAD]


def list_transactions(
    *,
    state: list[str] | None = None,
    longer_than_ms: int | None = None,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """List the transactional ids.

    Args:
        state: Only those in this state, such as Ongoing; may be repeated.
        longer_than_ms: Only those whose last transaction began at least this long ago.
    """
    request = ListTransactionsRequest(
        state_filters=tuple(map(_state_named, state or ())),
        duration_filter=i64(-1 if longer_than_ms is None else longer_than_ms),
    )
    rows = []
    for broker in every_broker(connection):
        response = broker.call(request)
        check(response.error_code, f"broker {broker.node_id}")
        rows += [
            {
                "transactional_id": found.transactional_id,
                "coordinator": broker.node_id,
                "producer_id": found.producer_id,
                "state": found.transaction_state,
            }
            for found in response.transaction_states
        ]
    rows.sort(key=lambda row: str(row["transactional_id"]))
    print_listing(COLUMNS, rows, as_json=as_json)


def _state_named(name: str) -> str:
    """Kafka's own tools insist on the case."""
    wanted = name.replace("_", "").lower()
    for state in STATES:
        if state.lower() == wanted:
            return state
    raise UsageError(f"{name} is not a state of transactions, which are {', '.join(STATES)}")
