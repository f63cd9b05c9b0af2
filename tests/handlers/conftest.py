import pytest
from tests.handlers.brokers import Node


@pytest.fixture
def start_node():
    nodes = []

    def start(**arguments):
        nodes.append(Node(**arguments))
        return nodes[-1]

    yield start
    for node in nodes:
        node.close()


@pytest.fixture
def node(start_node):
    return start_node()
