"""`ottla groups list`: names, protocols and states of the groups."""

import re
from collections.abc import Sequence
from typing import Literal

from kio.schema.list_groups.v5.request import ListGroupsRequest

from ottla.cli.broker_call import check, every_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson

COLUMNS = ("group", "protocol", "state")

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")

Protocol = Literal["classic", "consumer", "share"]


def list_groups(
    *,
    state: list[str] | None = None,
    protocol: list[Protocol] | None = None,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """List the groups: consumer groups of both protocols, and share groups.

    Args:
        state: Only those in this state, such as stable or empty; may be repeated.
        protocol: Only those of this protocol; may be repeated.
    """
    rows = group_rows(connection, state or (), protocol or ())
    print_listing(COLUMNS, rows, as_json=as_json)


def group_rows(
    connection: Connection, states: Sequence[str] = (), protocols: Sequence[Protocol] = ()
) -> list[dict[str, str]]:
    request = ListGroupsRequest(
        states_filter=tuple(state.replace("_", "") for state in states),  # In any case.
        types_filter=tuple(protocols),
    )
    rows: list[dict[str, str]] = []
    for broker in every_broker(connection):
        response = broker.call(request)
        check(response.error_code, f"broker {broker.node_id}")
        rows += [
            {
                "group": found.group_id,
                "protocol": found.group_type.lower(),
                "state": state_name(found.group_state),
            }
            for found in response.groups
        ]
    return sorted(rows, key=lambda row: row["group"])


def state_name(kafka_name: str) -> str:
    """`PreparingRebalance` is shown as `preparing_rebalance`."""
    return _WORD_START.sub("_", kafka_name).lower()
