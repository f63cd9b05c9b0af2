"""What commands report about records that are damaged on disk."""

from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.conftest import Ottla
from tests.cluster.processes import wait_until

from ottla.records.batch import HEADER_SIZE

pytestmark = pytest.mark.process

TOPIC = "orders"
EAGER = (
    *("--set", "internal.log.segment.bytes=200"),
    *("--set", "log.scrub.interval.ms=0"),
    *("--set", "log.scrub.bytes.per.second=100000000"),
)


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_damaged_replicas_are_named(ottla: Ottla, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, *EAGER) as broker:
        address = broker.bootstrap
        ottla("topics", "create", TOPIC, bootstrap=address)
        for number in range(6):
            assert ottla("produce", TOPIC, str(number) * 40, bootstrap=address).exit_code == 0
        assert ottla("cluster", "status", bootstrap=address).exit_code == 0
        broker.stop()
        flip(min((broker.data / f"{TOPIC}-0").glob("*.log")), HEADER_SIZE + 9)
        broker.start()
        wait_until(lambda: ottla("topics", "unhealthy", "--json", bootstrap=address).json)
        (row,) = ottla("topics", "unhealthy", "--json", bootstrap=address).json
        assert (row["topic"], row["isr"]) == (TOPIC, [1])
        assert row["problem"] == "damaged on 1: offset 0"
        status = ottla("cluster", "status", bootstrap=address)
        assert status.exit_code == 1
        assert status.output == f"unhealthy: {TOPIC}-0 is damaged on 1: offset 0\n"
        description = ottla("topics", "describe", TOPIC, bootstrap=address).output
        assert description.endswith("partition 0 is damaged on 1: offset 0\n")
        (document,) = ottla("topics", "describe", TOPIC, "--json", bootstrap=address).json
        (partition,) = document["partitions"]
        assert partition["damage"] == [{"node": 1, "first_offset": 0, "last_offset": 0}]
