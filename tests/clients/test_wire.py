"""Corners of the protocol that clients rarely reach and that other brokers got wrong."""

import struct
import time
from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.api_versions.v0.response import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.serial import entity_reader
from tests.broker_process import BrokerProcess
from tests.clients.client import Sent
from tests.clients.confluent_client import ConfluentClient
from tests.clients.conftest import CreateTopic, await_value
from tests.clients.requests import (
    batch,
    fetch,
    fetched,
    list_offsets,
    listed,
    metadata,
    produce,
    produced,
)
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.records.batch import read_header
from ottla.records.builder import Record, build_batch
from ottla.records.compression import Compression

NewName = Callable[[], str]

API_VERSIONS_KEY = 18
LONG_WAIT_MS = 25_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
TWO_BILLION = b"\xff\xff\xff\xff\x07"  # As a variable length number.


class TestApiVersions:
    def test_an_unknown_version_is_answered_with_v0_and_error_35(self, wire: Wire) -> None:
        wire.send_frame(struct.pack(">hhihb", API_VERSIONS_KEY, 99, 7, -1, 0))
        frame = wire.receive_frame()
        assert struct.unpack_from(">i", frame) == (7,)
        response, _ = entity_reader(ApiVersionsResponseV0)(frame, 4)
        assert response.error_code == ErrorCode.unsupported_version
        [versions] = [key for key in response.api_keys if key.api_key == API_VERSIONS_KEY]
        assert versions.max_version >= 3

    def test_every_version_of_itself_is_answered(self, wire: Wire) -> None:
        request = ApiVersionsRequest(
            client_software_name="wire-test", client_software_version="1.0"
        )
        response = wire.call(request)
        assert response.error_code == ErrorCode.none
        ranges = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
        assert ranges[0][0] == 0  # librdkafka needs the claim (KAFKA-18659).
        assert ranges[1][0] == 4
        assert all(low <= high for low, high in ranges.values())


class TestProduce:
    def test_a_batch_gets_its_offsets(self, wire: Wire, topic: str) -> None:
        first = produced(wire.call(produce(topic, batch(b"a", b"b"))))
        second = produced(wire.call(produce(topic, batch(b"c"))))
        assert (first.error_code, first.base_offset) == (ErrorCode.none, 0)
        assert (second.error_code, second.base_offset) == (ErrorCode.none, 2)
        assert second.log_start_offset == 0

    def test_a_flipped_bit_is_noticed(self, wire: Wire, topic: str) -> None:
        damaged = bytearray(batch(b"hello"))
        damaged[-1] ^= 1
        answer = produced(wire.call(produce(topic, bytes(damaged))))
        assert answer.error_code == ErrorCode.corrupt_message

    def test_a_partition_that_is_not_there(self, wire: Wire, topic: str) -> None:
        answer = produced(wire.call(produce(topic, batch(b"a"), partition=9)))
        assert answer.error_code == ErrorCode.unknown_topic_or_partition

    def test_a_topic_that_is_not_there(self, wire: Wire, new_name: NewName) -> None:
        answer = produced(wire.call(produce(new_name(), batch(b"a"))))
        assert answer.error_code == ErrorCode.unknown_topic_or_partition

    @pytest.mark.parametrize("acks", [2, -2])
    def test_acks_that_mean_nothing(self, wire: Wire, topic: str, acks: int) -> None:
        answer = produced(wire.call(produce(topic, batch(b"a"), acks=acks)))
        assert answer.error_code == ErrorCode.invalid_required_acks

    def test_without_acks_there_is_no_answer(self, wire: Wire, topic: str) -> None:
        wire.send(produce(topic, batch(b"a"), acks=0))
        request = metadata(topic)
        wire.send(request)
        response = wire.receive(request)
        assert [found.name for found in response.topics] == [topic]

    def test_a_control_batch_of_a_client_is_refused(self, wire: Wire, topic: str) -> None:
        control = batch(b"a", control=True, producer_id=1, producer_epoch=0, base_sequence=0)
        answer = produced(wire.call(produce(topic, control)))
        assert answer.error_code == ErrorCode.invalid_record

    def test_two_batches_for_one_partition_are_refused(self, wire: Wire, topic: str) -> None:
        answer = produced(wire.call(produce(topic, batch(b"a") + batch(b"b"))))
        assert answer.error_code == ErrorCode.invalid_record

    def test_a_record_without_a_key_on_a_compacted_topic(
        self, wire: Wire, create_topic: CreateTopic
    ) -> None:
        topic = create_topic(**{"cleanup.policy": "compact"})
        answer = produced(wire.call(produce(topic, batch(b"a", b"b", key=None))))
        assert answer.error_code == ErrorCode.invalid_record
        assert [error.batch_index for error in answer.record_errors] == [0, 1]
        assert produced(wire.call(produce(topic, batch(b"c")))).base_offset == 0

    @pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
    def test_records_too_old_or_too_far_ahead_are_named(
        self, wire: Wire, create_topic: CreateTopic, codec: Compression
    ) -> None:
        limits = {"message.timestamp.before.max.ms", "message.timestamp.after.max.ms"}
        topic = create_topic(**dict.fromkeys(limits, str(HOUR_MS)))
        now_ms = time.time_ns() // 1_000_000
        times = (now_ms - DAY_MS, now_ms, now_ms + DAY_MS, now_ms)
        records = build_batch([Record(timestamp=time_ms) for time_ms in times], compression=codec)
        answer = produced(wire.call(produce(topic, bytes(records))))
        assert answer.error_code == ErrorCode.invalid_timestamp
        assert [error.batch_index for error in answer.record_errors] == [0, 2]
        assert all(error.batch_index_error_message for error in answer.record_errors)


class TestIdempotence:
    def test_a_repeated_batch_is_not_written_again(self, wire: Wire, topic: str) -> None:
        options: dict[str, Any] = {"producer_id": 7_000_000, "producer_epoch": 0}
        for sequence in range(3):
            wire.call(produce(topic, batch(b"x", base_sequence=sequence, **options)))
        again = produced(wire.call(produce(topic, batch(b"x", base_sequence=1, **options))))
        assert (again.error_code, again.base_offset) == (ErrorCode.none, 1)
        assert fetched(wire.call(fetch(topic, 0))).high_watermark == 3

    def test_a_gap_in_the_sequence_is_refused(self, wire: Wire, topic: str) -> None:
        options: dict[str, Any] = {"producer_id": 7_000_001, "producer_epoch": 0}
        wire.call(produce(topic, batch(b"x", base_sequence=0, **options)))
        answer = produced(wire.call(produce(topic, batch(b"x", base_sequence=5, **options))))
        assert answer.error_code == ErrorCode.out_of_order_sequence_number

    def test_an_old_epoch_is_refused(self, wire: Wire, topic: str) -> None:
        options: dict[str, Any] = {"producer_id": 7_000_002, "base_sequence": 0}
        wire.call(produce(topic, batch(b"x", producer_epoch=1, **options)))
        answer = produced(wire.call(produce(topic, batch(b"x", producer_epoch=0, **options))))
        assert answer.error_code == ErrorCode.invalid_producer_epoch


class TestFetch:
    def test_the_middle_of_a_batch_gives_the_whole_batch(self, wire: Wire, topic: str) -> None:
        wire.call(produce(topic, batch(b"a", b"b", b"c")))
        answer = fetched(wire.call(fetch(topic, 1)))
        header = read_header(answer.records)
        assert (header.base_offset, header.last_offset) == (0, 2)
        assert len(answer.records) == header.size
        assert answer.high_watermark == answer.last_stable_offset == 3

    def test_a_small_limit_still_gives_one_batch(self, wire: Wire, topic: str) -> None:
        """Else a consumer would never get past a large batch (KIP-74)."""
        for _ in range(2):
            wire.call(produce(topic, batch(bytes(1000))))
        answer = fetched(wire.call(fetch(topic, 0, max_bytes=10)))
        assert len(answer.records) == read_header(answer.records).size

    def test_past_the_end(self, wire: Wire, topic: str) -> None:
        wire.call(produce(topic, batch(b"a")))
        answer = fetched(wire.call(fetch(topic, 2)))
        assert answer.error_code == ErrorCode.offset_out_of_range

    def test_at_the_end_there_is_nothing_yet(self, wire: Wire, topic: str) -> None:
        wire.call(produce(topic, batch(b"a")))
        answer = fetched(wire.call(fetch(topic, 1)))
        assert (answer.error_code, answer.records or b"") == (ErrorCode.none, b"")

    def test_a_waiting_fetch_is_answered_when_records_come(
        self, wire: Wire, bootstrap: str, topic: str
    ) -> None:
        """The wait would exceed the socket's timeout."""
        request = fetch(topic, 0, max_wait_ms=10 * LONG_WAIT_MS)
        wire.send(request)
        with Wire(bootstrap) as other:
            other.call(produce(topic, batch(b"a")))
        assert read_header(fetched(wire.receive(request)).records).records_count == 1

    def test_a_waiting_fetch_gives_up_after_its_time(self, wire: Wire, topic: str) -> None:
        answer = fetched(wire.call(fetch(topic, 0, max_wait_ms=50)))
        assert (answer.error_code, answer.records or b"") == (ErrorCode.none, b"")

    def test_a_topic_that_is_not_there(self, wire: Wire, new_name: NewName) -> None:
        answer = fetched(wire.call(fetch(new_name(), 0)))
        assert answer.error_code == ErrorCode.unknown_topic_or_partition

    @pytest.mark.parametrize(
        ("epoch", "code"),
        [(-1, ErrorCode.none), (0, ErrorCode.none), (99, ErrorCode.unknown_leader_epoch)],
    )
    def test_the_leader_epoch_of_the_client(
        self, wire: Wire, topic: str, epoch: int, code: ErrorCode
    ) -> None:
        assert fetched(wire.call(fetch(topic, 0, leader_epoch=epoch))).error_code == code
        assert listed(wire.call(list_offsets(topic, -1, leader_epoch=epoch))).error_code == code


class TestFetchSession:
    def test_only_what_changed_is_sent(self, wire: Wire, topic: str) -> None:
        first = wire.call(fetch(topic, 0, session_epoch=0))
        assert first.session_id > 0
        session = {"session_id": first.session_id}
        quiet = wire.call(fetch(topic, 0, session_epoch=1, **session))
        assert quiet.responses == ()
        wire.call(produce(topic, batch(b"a")))
        changed = wire.call(fetch(topic, 0, session_epoch=2, **session))
        assert fetched(changed).high_watermark == 1

    def test_a_session_that_is_not_there(self, wire: Wire, topic: str) -> None:
        response = wire.call(fetch(topic, 0, session_id=12345, session_epoch=1))
        assert response.error_code == ErrorCode.fetch_session_id_not_found

    def test_a_wrong_epoch_of_a_session(self, wire: Wire, topic: str) -> None:
        first = wire.call(fetch(topic, 0, session_epoch=0))
        response = wire.call(fetch(topic, 0, session_id=first.session_id, session_epoch=7))
        assert response.error_code == ErrorCode.invalid_fetch_session_epoch


class TestListOffsets:
    def test_earliest_latest_and_largest_timestamp(self, wire: Wire, topic: str) -> None:
        wire.call(produce(topic, batch(b"a", b"b")))
        offsets = {
            timestamp: listed(wire.call(list_offsets(topic, timestamp))).offset
            for timestamp in (-2, -1, 0, 2)
        }
        assert offsets == {-2: 0, -1: 2, 0: 0, 2: -1}

    def test_a_partition_that_is_not_there(self, wire: Wire, topic: str) -> None:
        answer = listed(wire.call(list_offsets(topic, -1, partition=9)))
        assert answer.error_code == ErrorCode.unknown_topic_or_partition


class TestMetadata:
    def test_a_topic_is_created_when_the_client_allows_it(
        self, wire: Wire, confluent: ConfluentClient, new_name: NewName
    ) -> None:
        topic = new_name()
        [answer] = wire.call(metadata(topic)).topics
        assert answer.error_code == ErrorCode.unknown_topic_or_partition
        assert topic not in confluent.topics()
        wire.call(metadata(topic, auto_create=True))
        while (answer := wire.call(metadata(topic)).topics[0]).error_code != ErrorCode.none:
            assert answer.error_code in (
                ErrorCode.unknown_topic_or_partition,
                ErrorCode.leader_not_available,
            )
        assert len(answer.partitions) == 1

    def test_a_bad_name_is_refused_and_not_created(self, wire: Wire) -> None:
        [answer] = wire.call(metadata("not a name", auto_create=True)).topics
        assert answer.error_code == ErrorCode.invalid_topic_exception

    def test_the_leader_is_among_the_brokers(self, wire: Wire, topic: str) -> None:
        response = wire.call(metadata(topic))
        [partition] = response.topics[0].partitions
        assert partition.leader_id in [broker.node_id for broker in response.brokers]
        assert partition.isr_nodes == partition.replica_nodes == (partition.leader_id,)
        assert response.cluster_id


class TestCreatedTopic:
    def test_it_can_be_used_at_once(
        self, own_broker: BrokerProcess, wire: Wire, confluent: ConfluentClient, new_name: NewName
    ) -> None:
        """Kafka may return NOT_LEADER_OR_FOLLOWER for some milliseconds."""
        for _ in range(5):
            topic = new_name()
            confluent.create_topic(topic)
            answer = produced(wire.call(produce(topic, batch(b"a"))))
            assert (answer.error_code, answer.base_offset) == (ErrorCode.none, 0)


class TestDeletedTopic:
    def test_produce_and_fetch_say_that_it_is_not_there(
        self, wire: Wire, confluent: ConfluentClient, topic: str
    ) -> None:
        confluent.produce(topic, [Sent()])
        confluent.delete_topic(topic)
        asked = produce(topic, batch(b"a"))
        unknown = ErrorCode.unknown_topic_or_partition
        await_value(lambda: produced(wire.call(asked)).error_code, unknown)
        answer = fetched(wire.call(fetch(topic, 0, max_wait_ms=LONG_WAIT_MS)))
        assert answer.error_code == unknown

    def test_a_waiting_fetch_is_answered_at_once(
        self, wire: Wire, confluent: ConfluentClient, topic: str
    ) -> None:
        request = fetch(topic, 0, max_wait_ms=10 * LONG_WAIT_MS)
        wire.send(request)
        confluent.delete_topic(topic)
        answer = fetched(wire.receive(request))
        assert answer.error_code == ErrorCode.unknown_topic_or_partition


class TestConnection:
    def test_answers_come_in_the_order_of_the_requests(self, wire: Wire, topic: str) -> None:
        """Even when the first of them waits."""
        requests = [fetch(topic, 0, max_wait_ms=100), metadata(topic), list_offsets(topic, -1)]
        for request in requests:
            wire.send(request)
        waited, described, listing = [wire.receive(request) for request in requests]
        assert fetched(waited).error_code == ErrorCode.none
        assert described.topics[0].name == topic
        assert listed(listing).offset == 0

    @pytest.mark.parametrize(
        "garbage",
        [
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
            struct.pack(">i", -5),
            struct.pack(">i", 2_000_000_000),
            struct.pack(">ihhih", 10, 999, 0, 1, -1),  # An API that does not exist.
            struct.pack(">ihhih", 10, 3, 99, 1, -1),  # A version of Metadata that does not exist.
            struct.pack(">i", 3) + b"abc",
        ],
        ids=["http", "negative size", "huge size", "unknown api", "unknown version", "short frame"],
    )
    def test_garbage_closes_the_connection_and_nothing_else(
        self, wire: Wire, bootstrap: str, garbage: bytes
    ) -> None:
        wire.send_bytes(garbage)
        assert wire.is_closed_by_peer()
        with Wire(bootstrap) as other:
            assert other.call(metadata()).brokers

    @pytest.mark.parametrize(
        "frame",
        [
            struct.pack(">hhihb", 3, 12, 1, -1, 0) + TWO_BILLION + bytes(20),
            struct.pack(">hhih", 3, 12, 1, -1) + TWO_BILLION + bytes(20),
            struct.pack(">hhihb", 3, 12, 1, -1, 0) + b"\x02" + bytes(16) + TWO_BILLION + bytes(9),
            struct.pack(">hhihb", 3, 12, 1, -1, 0) + b"\x00\x00\x00" + TWO_BILLION + bytes(9),
            struct.pack(">hhihi", 3, 1, 1, -1, 2_000_000_000) + bytes(20),
        ],
        ids=["array", "tags of the header", "string", "tags of the body", "old array"],
    )
    def test_a_length_that_the_frame_does_not_hold(
        self, wire: Wire, bootstrap: str, frame: bytes
    ) -> None:
        """A request that announces two billion topics must not be trusted."""
        wire.send_frame(frame)
        assert wire.is_closed_by_peer()
        with Wire(bootstrap) as other:
            assert other.call(metadata()).brokers

    def test_both_families_of_localhost_answer(self, own_broker: BrokerProcess) -> None:
        for host in ("127.0.0.1", "[::1]"):
            with Wire(f"{host}:{own_broker.port}") as connection:
                assert connection.call(metadata()).brokers


def test_a_fetch_past_the_end_of_its_epoch_is_told_where_that_ends(wire: Wire, topic: str) -> None:
    wire.call(produce(topic, batch(b"a", b"b", b"c")))
    diverged = fetched(wire.call(fetch(topic, 9, last_fetched_epoch=0, max_wait_ms=60_000)))
    assert diverged.error_code is ErrorCode.none
    assert (diverged.diverging_epoch.epoch, diverged.diverging_epoch.end_offset) == (0, 3)
    assert (diverged.high_watermark, diverged.records) in [(3, b""), (3, None)]
    agreed = fetched(wire.call(fetch(topic, 1, last_fetched_epoch=0)))
    assert agreed.diverging_epoch.epoch == -1
    assert agreed.records
    for offset, epoch in [(9, -1), (1, 7)]:
        refused = fetched(wire.call(fetch(topic, offset, last_fetched_epoch=epoch)))
        assert refused.error_code is ErrorCode.offset_out_of_range
