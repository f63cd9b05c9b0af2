"""The data directory is removed under a running broker."""

import shutil
from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.clients.confluent_client import ConfluentClient
from tests.clients.requests import batch, produce, produced
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode

RECORDS = 20


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_acknowledged_into_a_directory_that_is_gone(
    tmp_path: Path, replaced: bool
) -> None:
    with BrokerProcess(tmp_path) as broker:
        ConfluentClient(broker.bootstrap).create_topic("orders", 1)
        with Wire(broker.bootstrap) as wire:
            for offset in range(RECORDS):
                assert produced(wire.call(produce("orders", batch(b"a")))).base_offset == offset
            shutil.rmtree(broker.data)
            if replaced:
                broker.data.mkdir()
            for _ in range(RECORDS):
                try:
                    answer = produced(wire.call(produce("orders", batch(b"b"))))
                except (OSError, EOFError):
                    break  # The metadata is gone as well; the node stops once it notices.
                assert answer.error_code == ErrorCode.kafka_storage_error
        assert f"log directory {broker.data} goes offline" in broker.log_text()
        assert "it was removed or replaced while the node uses it" in broker.log_text()
