"""`ottla node undrain`: a node that was drained takes replicas again."""

from ottla.cli.broker_call import CORDONED_KEY, bootstrap_broker
from ottla.cli.broker_configs import alter_configs
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_line
from ottla.client.wire.configs import BROKER


def undrain(node: int, /, *, connection: Connection = DEFAULT_CONNECTION) -> None:
    """Let a drained node take new replicas again.

    Args:
        node: Id of the node.
    """
    with bootstrap_broker(connection) as broker:
        broker.node(node)
        alter_configs(broker, {(BROKER, str(node)): {CORDONED_KEY: None}})
    print_line(
        f"node {node} takes new replicas again; `ottla rebalance` moves its share of the "
        "existing replicas to it"
    )
