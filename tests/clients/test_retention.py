"""The results of retention and compaction, on a broker that runs them often."""

import time
from collections.abc import Callable, Iterator

import pytest
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S, Sent
from tests.clients.confluent_client import ConfluentClient

pytestmark = pytest.mark.process

OFTEN = ("log.retention.check.interval.ms=100", "log.cleaner.backoff.ms=100")
WEEK_AGO_MS = int(time.time() * 1000) - 7 * 86_400_000


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfluentClient]:
    settings = [word for assignment in OFTEN for word in ("--set", assignment)]
    with BrokerProcess(tmp_path_factory.mktemp("eager"), *settings) as broker:
        yield ConfluentClient(broker.bootstrap)


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"


def test_old_segments_go(eager: ConfluentClient) -> None:
    eager.create_topic("old", 1, {"retention.ms": "86400000", "segment.bytes": "1048576"})
    for _ in range(3):
        eager.produce("old", [Sent(value=bytes(900_000), timestamp_ms=WEEK_AGO_MS)])
    eager.produce("old", [Sent(value=bytes(900_000))])
    await_true(lambda: eager.offsets("old", 0) == (3, 4))
    assert eager.consume("old", 0, 3, 1)[0].offset == 3


def test_segments_past_the_size_go(eager: ConfluentClient) -> None:
    eager.create_topic("large", 1, {"retention.bytes": "2000000", "segment.bytes": "1048576"})
    for _ in range(6):
        eager.produce("large", [Sent(value=bytes(900_000))])
    await_true(lambda: eager.offsets("large", 0)[0] >= 3)
    assert eager.offsets("large", 0)[1] == 6


def test_compaction_keeps_the_last_of_each_key(eager: ConfluentClient) -> None:
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    eager.create_topic("compacted", 1, config | {"segment.bytes": "1048576"})
    for number in range(4):
        values = [Sent(key=b"%d" % key, value=b"%d" % number + bytes(100_000)) for key in range(10)]
        eager.produce("compacted", values)

    def first_offset() -> int:
        return eager.consume("compacted", 0, 0, 1)[0].offset

    await_true(lambda: first_offset() >= 10)
    last = {record.key: record.value for record in eager.consume("compacted", 0, 30, 10)}
    assert set(last) == {b"%d" % key for key in range(10)}
    assert {(value or b"")[:1] for value in last.values()} == {b"3"}
