"""Dead letters are written by their partition's leader, in batches, and never lost."""

import dataclasses
import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Any
from weakref import ReferenceType

import pytest
from kio.schema.produce.v13 import response as produce
from kio.schema.produce.v13.request import ProduceRequest
from kio.schema.produce.v13.response import ProduceResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64
from tests.controller.test_topics import creation, topic
from tests.kits.single_node import SingleNode
from tests.kits.world import until

from ottla.coordination import dead_letter_office
from ottla.coordination.coordinators import Coordinators
from ottla.coordination.dead_letter_reports import DeadLetterReports
from ottla.coordination.dead_letters import BATCH_BYTES, read_letters
from ottla.coordination.share_partitions import LedSharePartition
from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.acquisition import LogBatch
from ottla.groups.share.delivery import Acknowledgement, DeadLetter, DeadLetterReason
from ottla.groups.share.state_coordinator import SharePartitionKey
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.dead_letter_notes import dead_letter_note
from ottla.handlers.internal_topics import create_internal_topic
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import SHARE_GROUP_STATE_TOPIC
from ottla.records.batch import iterate_headers, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.replication.partition_leader import PartitionLeader
from ottla.storage.log import PartitionLog

GROUP = "g"
REJECT = (3,)
COUNT = 50


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[SingleNode]:
    monkeypatch.setattr(dead_letter_office, "BACKOFF_MAX_S", 0.001)
    node = SingleNode(share_coordinator_state_topic_num_partitions=1)
    node.call(handle_create_topics, creation(topic("orders", 1, 1), topic("dlq.orders", 1, 1)))
    append(node, *(str(number).encode() for number in range(COUNT)))
    node.run(create_internal_topic(node.broker, SHARE_GROUP_STATE_TOPIC))
    node.run(until(lambda: node.broker.share.coordinators.is_served(0)))
    node.run(node.broker.share.persister.initialize(key(node), 1, 0))
    yield node
    node.close()


def append(node: SingleNode, *values: bytes) -> PartitionLog:
    """In one batch."""
    log = node.partition("orders", 0).log
    batch = build_batch([Record(timestamp=1, key=b"k", value=value) for value in values])
    log.append_as_leader(memoryview(batch), read_header(batch), 0, 1)
    log.flush()
    log.high_watermark = log.log_end_offset
    return log


def key(node: SingleNode) -> SharePartitionKey:
    topic_id = node.image.topic_id("orders")
    assert topic_id is not None
    return SharePartitionKey(GROUP, topic_id, 0)


def lead_elsewhere(node: SingleNode) -> None:
    """Broker 2 leads the partition of the dead letters."""
    partitions = node.image.topics["dlq.orders"].partitions
    partitions[0] = dataclasses.replace(partitions[0], leader=BrokerId(2))


def reject(node: SingleNode, *offsets: int) -> LedSharePartition:
    async def run() -> LedSharePartition:
        led = await node.broker.share.partitions.find(GROUP, TopicIdPartition(*key(node)[1:]))
        batches = [LogBatch(offset, offset) for offset in range(COUNT)]
        led.acquire("a", 0, batches, records_max=COUNT, batch_size=COUNT)
        await led.acknowledge(
            "a", [Acknowledgement(offset, offset, REJECT) for offset in sorted(offsets)]
        )
        return led

    return node.run(run())


def wait_until_sent(node: SingleNode, led: LedSharePartition) -> None:
    node.run(until(lambda: not led.dead_letters()))


def contents(log: PartitionLog) -> list[Record]:
    part = log.read(0, 1 << 24, log.log_end_offset)
    assert part is not None
    content = part.read()
    return [
        record
        for position, _ in iterate_headers(content)
        for record in iterate_records(content, position)
    ]


class OtherBroker:
    """Answers Produce with these codes in turn, then with none."""

    def __init__(self, *codes: ErrorCode) -> None:
        self.codes = list(codes)
        self.batches: list[list[Record]] = []

    async def __call__(self, broker_id: int, request: ProduceRequest) -> ProduceResponse:
        assert broker_id == 2
        (data,) = request.topic_data[0].partition_data
        code = self.codes.pop(0) if self.codes else ErrorCode.none
        if code is ErrorCode.none:
            assert data.records is not None
            self.batches.append(list(iterate_records(data.records)))
        answer = produce.PartitionProduceResponse(
            index=i32(0), error_code=code, base_offset=i64(0), record_errors=()
        )
        topic = produce.TopicProduceResponse(topic_id=None, partition_responses=(answer,))
        return produce.ProduceResponse(responses=(topic,))


def other_broker(node: SingleNode, *codes: ErrorCode) -> OtherBroker:
    """From now on, broker 2 answers."""
    other = OtherBroker(*codes)
    node.broker.share.partitions.office.routes._routes.ask = other
    return other


def test_letters_are_sent_to_the_leader_in_one_batch(node: SingleNode) -> None:
    other = other_broker(node)
    lead_elsewhere(node)

    led = reject(node, *range(0, COUNT, 2))
    wait_until_sent(node, led)

    (batch,) = other.batches
    assert [record.value for record in batch] == [b"%d" % offset for offset in range(0, COUNT, 2)]
    assert node.run(node.broker.share.persister.read_summary(key(node))).start_offset == 1


def test_letters_are_appended_where_this_broker_leads(node: SingleNode) -> None:
    wait_until_sent(node, reject(node, 3, 4))

    assert [record.value for record in contents(node.partition("dlq.orders", 0).log)] == [
        b"3",
        b"4",
    ]


def test_failing_letters_are_told_once_and_written_in_the_end(
    node: SingleNode, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    other = other_broker(node, *[ErrorCode.not_leader_or_follower] * 20)
    lead_elsewhere(node)

    led = reject(node, *range(COUNT))
    wait_until_sent(node, led)

    (batch,) = other.batches
    assert len(batch) == COUNT
    lines = [record.getMessage() for record in caplog.records if "dead letters" in record.message]
    assert len(lines) == 2
    assert "cannot write dead letters to dlq.orders" in lines[0]
    assert "writes dead letters to dlq.orders again" in lines[1]


def test_letters_wait_in_the_state_of_the_share_partition(node: SingleNode) -> None:
    lead_elsewhere(node)
    led = reject(node, 0, 1)
    summary = node.run(node.broker.share.persister.read_summary(key(node)))

    note = node.run(dead_letter_note(node.broker, key(node), summary))

    assert note is not None
    assert note.startswith("2 dead letters wait to be written; dlq.orders-0 is led by node 2")
    node.broker.share.partitions.drop(key(node))
    assert led.dead_letters() == ()

    other = other_broker(node)
    again = node.run(node.broker.share.partitions.find(GROUP, TopicIdPartition(*key(node)[1:])))
    wait_until_sent(node, again)
    sent = {tuple(record.value for record in batch) for batch in other.batches}
    assert sent == {(b"0", b"1")}  # Perhaps twice: one may have been in flight.
    summary = node.run(node.broker.share.persister.read_summary(key(node)))
    assert node.run(dead_letter_note(node.broker, key(node), summary)) is None


def test_a_letter_too_large_for_its_topic_says_where_the_record_is(node: SingleNode) -> None:
    other = other_broker(node, *[ErrorCode.message_too_large] * 2)
    lead_elsewhere(node)

    wait_until_sent(node, reject(node, 0, 1))

    bare, whole = [record for batch in other.batches for record in batch]
    assert (bare.key, bare.value, whole.value) == (None, None, b"1")
    assert dict(bare.headers)["__dlq.errors.offset"] == b"0"


def test_letters_are_read_a_batch_at_a_time(node: SingleNode) -> None:
    value = bytes(BATCH_BYTES // 4)
    log = append(node, *[value] * 10)
    source = node.partition("orders", 0)
    letters = [DeadLetter(COUNT, COUNT + 9, 5, DeadLetterReason.DELIVERY_COUNT)]

    found = read_letters(source, letters, GROUP, copy_record=True)

    assert [record.value for record in found.records] == [value] * 4
    assert [letter[:2] for letter in found.written] == [(COUNT, COUNT + 3)]
    assert log.log_end_offset == COUNT + 10


def letters_of(*offsets: int) -> list[DeadLetter]:
    return [DeadLetter(offset, offset, 1, DeadLetterReason.REJECTED) for offset in offsets]


def test_letters_of_deleted_records_count_as_written(node: SingleNode) -> None:
    source = node.partition("orders", 0)
    source.log.log_start_offset = COUNT - 1
    letters = letters_of(3, 7)

    found = read_letters(source, letters, GROUP, copy_record=True)

    assert found.records == []
    assert found.written == tuple(letters)


def test_letters_wait_for_the_high_watermark(node: SingleNode) -> None:
    """A new leader learns its high watermark from its followers."""
    source = node.partition("orders", 0)
    append(node, b"later")
    source.log.high_watermark = COUNT

    found = read_letters(source, letters_of(3, COUNT), GROUP, copy_record=True)
    assert [record.value for record in found.records] == [b"3"]
    assert found.written == tuple(letters_of(3))

    with pytest.raises(ApiError) as refused:
        read_letters(source, letters_of(COUNT), GROUP, copy_record=True)
    assert refused.value.code is ErrorCode.offset_not_available

    source.log.high_watermark = COUNT + 1
    found = read_letters(source, letters_of(COUNT), GROUP, copy_record=True)
    assert [record.value for record in found.records] == [b"later"]


def test_letters_of_a_new_leader_are_sent_when_its_followers_confirm_them(
    node: SingleNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = other_broker(node, *[ErrorCode.not_leader_or_follower] * 1_000)
    lead_elsewhere(node)
    reject(node, 1, 2)
    office = node.broker.share.partitions.office
    node.broker.share.partitions.drop(key(node))
    node.run(until(lambda: not office._sending))
    other.codes.clear()
    log = node.partition("orders", 0).log
    log.high_watermark = 0
    refusals: list[ErrorCode] = []
    monkeypatch.setattr(
        DeadLetterReports, "on_failed", lambda *arguments: refusals.append(arguments[3].code)
    )

    node.run(node.broker.share.waiting_letters.look())
    node.run(until(lambda: len(refusals) > 1))
    assert set(refusals) == {ErrorCode.offset_not_available}
    assert other.batches == []

    log.high_watermark = COUNT
    node.run(until(lambda: len(other.batches) > 0))
    assert [record.value for record in other.batches[-1]] == [b"1", b"2"]


def test_letters_beyond_the_end_of_the_log_count_as_written(node: SingleNode) -> None:
    """Like after an unclean election, which loses records."""
    source = node.partition("orders", 0)
    letters = letters_of(3, COUNT, COUNT + 5)

    found = read_letters(source, letters, GROUP, copy_record=True)

    assert [record.value for record in found.records] == [b"3"]
    assert found.written == tuple(letters)


def test_letters_that_wait_are_sent_without_a_consumer(node: SingleNode) -> None:
    """Like after a restart: the share-partition is in no broker's memory."""
    other = other_broker(node, *[ErrorCode.not_leader_or_follower] * 3)
    lead_elsewhere(node)
    reject(node, 1, 2)
    node.broker.share.partitions.drop(key(node))
    other.codes.clear()

    node.run(node.broker.share.waiting_letters.look())
    node.run(until(lambda: len(other.batches) > 0))

    assert [record.value for record in other.batches[-1]] == [b"1", b"2"]


def test_a_coordinator_that_is_being_loaded_is_looked_at_later(
    node: SingleNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Loading:
        @property
        def machine(self) -> None:
            raise ApiError(ErrorCode.coordinator_load_in_progress)

    with monkeypatch.context() as patch:
        patch.setattr(Coordinators, "all", lambda _: iter([Loading()]))
        node.run(node.broker.share.waiting_letters.look())


def test_a_leader_elsewhere_is_reminded_of_letters(node: SingleNode) -> None:
    reminded: list[SharePartitionKey] = []

    class Leader:
        async def read_summary(self, asked: SharePartitionKey) -> None:
            reminded.append(asked)
            raise ApiError(ErrorCode.not_coordinator)

    other_broker(node, *[ErrorCode.not_leader_or_follower] * 3)
    lead_elsewhere(node)
    reject(node, 1)
    node.broker.share.partitions.drop(key(node))
    partitions = node.image.topics["orders"].partitions
    partitions[0] = dataclasses.replace(partitions[0], leader=BrokerId(2))
    waiting_letters: Any = node.broker.share.waiting_letters
    waiting_letters.broker_at = lambda broker_id: {2: Leader()}[broker_id]

    node.run(waiting_letters.look())

    assert reminded == [key(node)]


def test_a_refused_append_leaves_no_cycle(
    node: SingleNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes = node.broker.share.partitions.office.routes
    refusal = ApiError(ErrorCode.not_enough_replicas_after_append)
    monkeypatch.setattr(PartitionLeader, "acknowledged", lambda *_: False)
    monkeypatch.setattr(
        PartitionLeader, "wait_for_acknowledgement", lambda *arguments: arguments[-1](refusal)
    )
    batch = build_batch([Record(timestamp=1, value=b"v")])

    async def refused() -> ReferenceType[ApiError]:
        try:
            await routes._routes._append_here(node.partition("dlq.orders", 0), batch)
        except ApiError as error:
            return weakref.ref(error)
        raise AssertionError("it was taken")

    gc.disable()
    try:
        assert node.run(refused())() is None
    finally:
        gc.enable()
