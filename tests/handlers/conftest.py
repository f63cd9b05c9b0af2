from collections.abc import Callable, Iterator

import pytest
from tests.kits.single_node import SingleNode


@pytest.fixture
def start_node() -> Iterator[Callable[..., SingleNode]]:
    nodes: list[SingleNode] = []

    def start(**configs: object) -> SingleNode:
        nodes.append(SingleNode(**configs))  # type: ignore[arg-type]
        return nodes[-1]

    yield start
    for node in nodes:
        node.close()


@pytest.fixture
def node(start_node: Callable[..., SingleNode]) -> SingleNode:
    return start_node()
