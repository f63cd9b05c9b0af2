"""boto3 with a real gateway."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.gateway.dialects.sqs.boto import make_client, queue_name
from tests.gateway.gateway_process import GatewayProcess


@pytest.fixture
def sqs(gateway: GatewayProcess) -> Iterator[Any]:
    client = make_client(gateway.url)
    yield client
    client.close()
    assert "Traceback" not in gateway.log_text(), gateway.log_text()[-5_000:]


@pytest.fixture
def queue(sqs: Any) -> str:
    """The URL of a new queue."""
    url: str = sqs.create_queue(QueueName=queue_name())["QueueUrl"]
    return url
