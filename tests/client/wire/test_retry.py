"""What is retried, and for how long."""

import pytest

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.errors import Unreachable


class GivenUp(Exception):
    pass


def test_on_retry_can_end_an_operation_that_would_be_tried_again() -> None:
    tries: list[int] = []

    def give_up(_: float) -> None:
        if len(tries) == 2:
            raise GivenUp

    def operation() -> None:
        tries.append(len(tries))
        raise Unreachable("127.0.0.1:1", OSError("nobody is there"))

    with Cluster("127.0.0.1:1") as cluster:
        cluster.on_retry = give_up
        with pytest.raises(GivenUp):
            cluster.retry(operation)
    assert tries == [0, 1]
