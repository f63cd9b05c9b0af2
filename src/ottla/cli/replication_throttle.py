"""The throttle of reassignments: set before the copying begins, taken off when it is done.

It is Kafka's: a rate for each node, and in each topic the replicas that it holds for. Who is in
sync is never held up.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ottla.cli.broker_call import BrokerCall
from ottla.cli.broker_configs import alter_configs
from ottla.cli.errors import UsageError
from ottla.cli.replica_plan import Move
from ottla.client.wire.configs import BROKER, TOPIC, Resource

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

_RATE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)(i?)b?(?:/s)?", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3}


def parse_rate(text: str | None) -> int | None:
    """Bytes in a second, of such as 500000, 10MB or 10 MiB/s."""
    if text is None:
        return None
    found = _RATE.fullmatch(text.strip())
    rate = 0
    if found is not None:
        number, unit, binary = found.groups()
        rate = int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()])
    if rate < 1:
        raise UsageError(f"--throttle {text!r} is not a rate such as 500000 or 10MB")
    return rate


def set_throttle(broker: BrokerCall, moves: Sequence[Move], rate: int) -> None:
    changes: dict[Resource, dict[str, str | None]] = {}
    for topic in sorted({move.topic_partition.topic for move in moves}):
        of_topic = [move for move in moves if move.topic_partition.topic == topic]
        changes[TOPIC, topic] = {
            LEADER_REPLICAS: _replicas((move, move.before) for move in of_topic),
            FOLLOWER_REPLICAS: _replicas((move, move.added) for move in of_topic),
        }
    nodes = sorted({node for move in moves for node in (*move.before, *move.after)})
    alter_configs(broker, changes | _rates(nodes, rate))


def change_rate(broker: BrokerCall, nodes: Iterable[int], rate: int) -> None:
    alter_configs(broker, _rates(nodes, rate))


def clear_throttle(broker: BrokerCall, topics: Iterable[str], nodes: Iterable[int]) -> None:
    changes: dict[Resource, dict[str, str | None]] = {
        (TOPIC, topic): {LEADER_REPLICAS: None, FOLLOWER_REPLICAS: None} for topic in topics
    }
    alter_configs(broker, changes | _rates(nodes, None))


def _rates(nodes: Iterable[int], rate: int | None) -> dict[Resource, dict[str, str | None]]:
    value = None if rate is None else str(rate)
    return {(BROKER, str(node)): {LEADER_RATE: value, FOLLOWER_RATE: value} for node in nodes}


def _replicas(moves: Iterable[tuple[Move, Iterable[int]]]) -> str:
    return ",".join(
        f"{move.topic_partition.partition}:{node}"
        for move, nodes in moves
        for node in sorted(nodes)
    )
