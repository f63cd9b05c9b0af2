"""Corners of a running broker: several listeners, topic ids of deleted topics, fetch sessions."""

import contextlib
import itertools
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64
from tests.broker_process import BrokerProcess
from tests.clients.confluent_client import ConfluentClient
from tests.clients.requests import (
    TIMEOUT,
    batch,
    fetch,
    fetched,
    list_offsets,
    listed,
    metadata,
    milliseconds,
    produce,
    produced,
)
from tests.clients.versions import build_request
from tests.clients.wire import Wire
from tests.ports import ReservedPort
from tests.process.topic_churn import create_topic, delete_topic

from ottla.protocol.errors import ErrorCode

PRODUCE, FETCH = 0, 1
TOPIC_ID_VERSION = 13
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("corners"), "--host", "localhost") as process:
        yield process


@pytest.fixture
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    with Wire(broker.bootstrap) as connection:
        yield connection


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_localhost_has_two_families(broker: BrokerProcess, host: str) -> None:
    if host == "[::1]" and not _has_ipv6():
        pytest.skip("this machine has no ::1")
    with Wire(f"{host}:{broker.port}") as connection:
        assert connection.call(metadata()).brokers


def test_each_listener_tells_its_own_address(tmp_path: Path) -> None:
    inside, outside = ReservedPort(), ReservedPort()
    broker = BrokerProcess(
        tmp_path,
        "--listener",
        f"INSIDE://127.0.0.1:{inside}",
        "--listener",
        f"OUTSIDE://127.0.0.1:{outside}",
        "--set",
        f"advertised.listeners=INSIDE://127.0.0.1:{inside},OUTSIDE://broker.example:19092",
        "--set",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        port=inside,
    )
    with broker:
        advertised = {}
        for port in (inside.number, outside.number):
            with Wire(f"127.0.0.1:{port}") as connection:
                [node] = connection.call(metadata()).brokers
                advertised[port] = (node.host, node.port)
        assert advertised == {
            inside.number: ("127.0.0.1", inside.number),
            outside.number: ("broker.example", 19092),
        }
        ConfluentClient(broker.bootstrap).create_topic("orders")


def _topic_id(wire: Wire, topic: str) -> UUID:
    return wire.call(metadata(topic)).topics[0].topic_id  # type: ignore[no-any-return]


def _fetch_by_id(wire: Wire, topic_id: UUID) -> Any:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    values = {
        "max_wait": milliseconds(DAY_MS),
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": ({"topic_id": topic_id, "partitions": (partition,)},),
        "forgotten_topics_data": (),
    }
    return wire.call(build_request(FETCH, TOPIC_ID_VERSION, values))


def _produce_by_id(wire: Wire, topic_id: UUID) -> Any:
    values = {
        "transactional_id": None,
        "acks": -1,
        "timeout": TIMEOUT,
        "topic_data": (
            {"topic_id": topic_id, "partition_data": ({"index": 0, "records": batch(b"a")},)},
        ),
    }
    return wire.call(build_request(PRODUCE, TOPIC_ID_VERSION, values))


def test_the_id_of_a_deleted_topic_is_unknown_though_its_name_is_back(wire: Wire) -> None:
    create_topic(wire, "again")
    old = _topic_id(wire, "again")
    assert produced(_produce_by_id(wire, old)).error_code == ErrorCode.none
    delete_topic(wire, "again")
    create_topic(wire, "again")
    assert _topic_id(wire, "again") != old
    assert fetched(_fetch_by_id(wire, old)).error_code == ErrorCode.unknown_topic_id
    assert produced(_produce_by_id(wire, old)).error_code == ErrorCode.unknown_topic_id
    assert fetched(wire.call(fetch("again", 0))).high_watermark == 0


def test_a_topic_that_is_deleted_under_load(broker: BrokerProcess, wire: Wire) -> None:
    """Requests sent before, during and after: each is answered, in order."""
    create_topic(wire, "going")
    requests: list[Any] = [produce("going", batch(b"a")) for _ in range(300)]
    with Wire(broker.bootstrap) as producer, Wire(broker.bootstrap) as consumer:
        waiting = fetch("going", 0, max_wait_ms=DAY_MS, min_bytes=2**31 - 1)
        consumer.send(waiting)
        for request in requests[:150]:
            producer.send(request)
        assert delete_topic(wire, "going") == ErrorCode.none
        for request in requests[150:]:
            producer.send(request)
        codes = [produced(producer.receive(request)).error_code for request in requests]
        assert set(codes) <= {ErrorCode.none, ErrorCode.unknown_topic_or_partition}
        assert codes[-1] == ErrorCode.unknown_topic_or_partition
        answer = fetched(consumer.receive(waiting))
        assert answer.error_code == ErrorCode.unknown_topic_or_partition
    assert create_topic(wire, "going") == ErrorCode.none
    assert listed(wire.call(list_offsets("going", -1))).offset == 0


def _session_fetch(session_id: int, epoch: int, *topics: Any, forget: tuple[str, ...] = ()) -> Any:
    forgotten = tuple(
        ForgottenTopic(topic=TopicName(name), partitions=(i32(0),)) for name in forget
    )
    return FetchRequest(
        max_wait=milliseconds(0),
        min_bytes=i32(1),
        session_id=i32(session_id),
        session_epoch=i32(epoch),
        topics=topics,
        forgotten_topics_data=forgotten,
    )


def _wanted(topic: str, offset: int) -> Any:
    partition = FetchPartition(
        partition=i32(0), fetch_offset=i64(offset), partition_max_bytes=i32(1 << 20)
    )
    return FetchTopic(topic=TopicName(topic), partitions=(partition,))


def _high_watermarks(response: Any) -> dict[str, int]:
    """The high watermarks of the partitions in the response."""
    assert response.error_code == ErrorCode.none
    return {t.topic: t.partitions[0].high_watermark for t in response.responses}


def test_a_fetch_session_from_its_first_to_its_last_request(wire: Wire) -> None:
    for topic in ("left", "right"):
        create_topic(wire, topic)
    first = wire.call(_session_fetch(0, 0, _wanted("left", 0), _wanted("right", 0)))
    session = first.session_id
    assert session
    assert _high_watermarks(first) == {"left": 0, "right": 0}
    assert _high_watermarks(wire.call(_session_fetch(session, 1))) == {}
    wire.call(produce("right", batch(b"a")))
    assert _high_watermarks(wire.call(_session_fetch(session, 2))) == {"right": 1}
    assert _high_watermarks(wire.call(_session_fetch(session, 3, _wanted("right", 1)))) == {}
    for topic in ("left", "right"):
        wire.call(produce(topic, batch(b"b")))
    assert _high_watermarks(wire.call(_session_fetch(session, 4, forget=("right",)))) == {"left": 1}
    delete_topic(wire, "left")
    gone = wire.call(_session_fetch(session, 5))
    assert gone.responses[0].partitions[0].error_code == ErrorCode.unknown_topic_or_partition
    closed = wire.call(_session_fetch(session, -1, _wanted("right", 0)))
    assert closed.session_id == 0
    late = wire.call(_session_fetch(session, 6))
    assert late.error_code == ErrorCode.fetch_session_id_not_found


def test_a_stop_in_the_middle_of_everything_is_orderly(tmp_path: Path) -> None:
    """SIGTERM while requests of all kinds arrive: exit code 0, and no failures in the log."""
    broker = BrokerProcess(tmp_path)
    for number in range(3):
        broker.start()
        try:
            with Wire(broker.bootstrap) as wire:
                create_topic(wire, "orders")
                wire.send(fetch("orders", number, max_wait_ms=DAY_MS, min_bytes=2**31 - 1))
                with ThreadPoolExecutor(4) as threads:
                    counts = [itertools.count() for _ in range(4)]
                    for count in counts:
                        threads.submit(_ask_until_it_ends, broker.bootstrap, count)
                    while any(next(copy(count)) < 20 for count in counts):
                        pass
                    assert broker.stop() == 0, broker.log_text()
        finally:
            broker.kill()
    unexpected = (" ERROR ", " WARNING ", "Traceback", "never awaited", "never retrieved")
    assert [word for word in unexpected if word in broker.log_text()] == [], broker.log_text()


def _ask_until_it_ends(bootstrap: str, count: "itertools.count[int]") -> None:
    """Many requests in flight at any time."""
    with Wire(bootstrap) as wire, contextlib.suppress(OSError, EOFError):
        while True:
            name = f"auto-{id(count)}-{next(count)}"
            requests = [metadata(name, auto_create=True), produce("orders", batch(b"a"))] * 5
            for request in requests:
                wire.send(request)
            for request in requests:
                wire.receive(request)
