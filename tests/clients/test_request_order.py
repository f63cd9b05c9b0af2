"""Requests of one connection take effect in order, even when sent at once.

In each pair, one request can see the effect of the other.
"""

from collections.abc import Callable

import pytest
from tests.broker_process import BrokerProcess, ExternalBroker
from tests.clients.conftest import CreateTopic
from tests.clients.pairs import of_groups, of_logs, of_topics, of_transactions
from tests.clients.pairs.pair import PAIRS, Pair, World
from tests.clients.wire import Wire

ROUNDS = 3

assert all((of_groups, of_logs, of_topics, of_transactions))  # Each has added its pairs.

OF_CONTROLLER = frozenset({19, 20, 33, 37, 44, 57})  # CreateTopics to UpdateFeatures.


@pytest.mark.parametrize("name", PAIRS)
def test_the_order_of_effects(
    broker: BrokerProcess | ExternalBroker,
    bootstrap: str,
    new_name: Callable[[], str],
    create_topic: CreateTopic,
    name: str,
) -> None:
    with Wire(bootstrap) as wire:
        world = World(wire, new_name, create_topic)
        for _ in range(ROUNDS):
            pair = PAIRS[name](world)
            wire.send(pair.first, pair.second)
            first = wire.receive(pair.first) if pair.first_is_answered else None
            second = wire.receive(pair.second)
            while isinstance(broker, ExternalBroker) and is_late(pair, first, second):
                second = wire.call(pair.second)
            assert pair.see(first, second) == pair.expected, (first, second)
            pair.after()


def is_late(pair: Pair, first: object, second: object) -> bool:
    """A Kafka broker learns of a controller's change a moment after the client."""
    return (
        pair.first.__api_key__ in OF_CONTROLLER
        and pair.second.__api_key__ not in OF_CONTROLLER
        and pair.see(first, second) != pair.expected
    )
