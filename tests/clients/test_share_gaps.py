"""How share consumers acknowledge offsets without a record, and what is refused.

The Java consumer acknowledges acquired offsets without a record with type 0, gap: transaction
markers, and records removed by compaction.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Producer
from kio.schema.errors import ErrorCode
from kio.schema.share_acknowledge.v2 import request as acknowledge
from kio.schema.types import GroupId
from kio.static.primitive import i8, i32, i64
from tests.clients.client import TIMEOUT_S
from tests.clients.conftest import CreateTopic
from tests.clients.test_share_groups import configured_group, produce
from tests.clients.test_share_wire import Member, described, join
from tests.clients.wire import Wire

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
NONE, INVALID_REQUEST, INVALID_STATE = (
    ErrorCode.none,
    ErrorCode.invalid_request,
    ErrorCode.invalid_record_state,
)

Batch = tuple[int, int, tuple[int, ...]]  # First and last offset, and types.
NewMember = Callable[[str], Member]


@pytest.fixture
def new_member(bootstrap: str, new_name: Callable[[], str]) -> Iterator[NewMember]:
    """A member of a new group, to which a topic is assigned from its beginning."""
    with ExitStack() as stack:

        def new(topic: str) -> Member:
            wire = stack.enter_context(Wire(bootstrap))
            member = Member(wire, configured_group(bootstrap, new_name()), topic)
            join(member)
            return member

        yield new


@pytest.fixture
def member(bootstrap: str, create_topic: CreateTopic, new_member: NewMember) -> Member:
    """A member that has acquired four of six records."""
    topic = create_topic()
    produce(bootstrap, topic, *"abcdef")
    member = new_member(topic)
    assert member.acquire(records_max=4) == [(0, 3, 1)]
    return member


def say(member: Member, *batches: Batch, renew: bool = False) -> ErrorCode:
    """The broker's answer for the partition."""
    partition = acknowledge.AcknowledgePartition(
        partition_index=i32(0),
        acknowledgement_batches=tuple(
            acknowledge.AcknowledgementBatch(
                first_offset=i64(first),
                last_offset=i64(last),
                acknowledge_types=tuple(map(i8, types)),
            )
            for first, last, types in batches
        ),
    )
    topic = acknowledge.AcknowledgeTopic(topic_id=member.topic_id, partitions=(partition,))
    request = acknowledge.ShareAcknowledgeRequest(
        group_id=GroupId(member.group),
        member_id=member.name,
        share_session_epoch=i32(member.epoch),
        is_renew_ack=renew,
        topics=(topic,),
    )
    member.epoch += 1
    response = member.wire.call(request)
    assert response.error_code is NONE
    ((answer,),) = (each.partitions for each in response.responses)
    return ErrorCode(answer.error_code)


def is_open(member: Member) -> list[int]:
    """The first four offsets that the member still holds."""
    return [offset for offset in range(4) if say(member, (offset, offset, (ACCEPT,))) is NONE]


def test_a_gap_is_done(member: Member) -> None:
    assert say(member, (0, 3, (GAP,))) is NONE
    assert member.acquire() == [(4, 5, 1)]


def test_gaps_among_records(member: Member) -> None:
    assert say(member, (0, 3, (ACCEPT, GAP, RELEASE, GAP))) is NONE
    assert member.acquire(records_max=1) == [(2, 2, 2)]


def test_batches_of_gaps_between_batches_of_records(member: Member) -> None:
    assert say(member, (0, 0, (ACCEPT,)), (1, 2, (GAP,)), (3, 3, (RELEASE,))) is NONE
    assert member.acquire(records_max=1) == [(3, 3, 2)]


def test_a_gap_beside_a_renewed_record(member: Member) -> None:
    assert say(member, (0, 3, (RENEW, GAP, RENEW, GAP)), renew=True) is NONE
    assert say(member, (1, 1, (ACCEPT,))) is INVALID_STATE
    assert say(member, (2, 2, (GAP,))) is NONE
    assert say(member, (0, 0, (ACCEPT,))) is NONE
    assert member.acquire() == [(4, 5, 1)]


@pytest.mark.parametrize(
    ("first", "again", "expected"),
    [
        pytest.param((1, 1, (RELEASE,)), (1, 1, (GAP,)), INVALID_STATE, id="available"),
        pytest.param((1, 1, (GAP,)), (1, 1, (GAP,)), INVALID_STATE, id="gap"),
        pytest.param((1, 1, (REJECT,)), (1, 1, (GAP,)), INVALID_STATE, id="archived"),
        pytest.param((1, 1, (ACCEPT,)), (1, 1, (GAP,)), INVALID_STATE, id="acknowledged"),
        pytest.param((0, 0, (GAP,)), (0, 0, (GAP,)), NONE, id="before the start"),
        pytest.param((0, 1, (GAP,)), (0, 2, (GAP,)), NONE, id="across the start"),
        pytest.param((1, 1, (GAP,)), (0, 3, (GAP,)), INVALID_STATE, id="a part is done"),
        pytest.param((1, 1, (GAP,)), (3, 4, (GAP,)), INVALID_REQUEST, id="beyond the end"),
        pytest.param(
            (1, 1, (GAP,)),
            (1, 4, (GAP, GAP, GAP, ACCEPT)),
            INVALID_REQUEST,
            id="a part is done and another beyond the end",
        ),
        pytest.param((1, 1, (GAP,)), (4, 4, (GAP,)), INVALID_REQUEST, id="after the end"),
        pytest.param((0, 3, (GAP,)), (4, 4, (GAP,)), INVALID_STATE, id="nothing in flight"),
        pytest.param((0, 3, (GAP,)), (3, 3, (GAP,)), NONE, id="all is done"),
    ],
)
def test_a_gap_where_nothing_is_acquired(
    member: Member, first: Batch, again: Batch, expected: ErrorCode
) -> None:
    assert say(member, first) is NONE
    assert say(member, again) is expected


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        pytest.param([(0, 1, (GAP, ACCEPT, GAP))], INVALID_REQUEST, id="more types than offsets"),
        pytest.param([(0, 3, (GAP, ACCEPT))], INVALID_REQUEST, id="fewer types than offsets"),
        pytest.param([(0, 0, ())], INVALID_REQUEST, id="no type"),
        pytest.param([(0, 0, (-1,))], INVALID_REQUEST, id="a negative type"),
        pytest.param([(0, 1, (GAP, 5))], INVALID_REQUEST, id="a type that nobody knows"),
        pytest.param([(1, 0, (GAP,))], INVALID_REQUEST, id="backwards"),
        pytest.param([(1, 1, (GAP,)), (0, 0, (GAP,))], INVALID_REQUEST, id="descending"),
        pytest.param([(0, 2, (GAP,)), (1, 3, (GAP,))], INVALID_REQUEST, id="overlapping"),
        pytest.param([(0, 1, (GAP,)), (1, 2, (GAP,))], INVALID_STATE, id="one offset twice"),
        pytest.param([(0, 3, (GAP,)), (4, 4, (GAP,))], INVALID_REQUEST, id="one is too far"),
        pytest.param([(0, 1, (RENEW, GAP))], INVALID_REQUEST, id="unannounced renewal"),
    ],
)
def test_what_is_refused_changes_nothing(
    member: Member, batches: list[Batch], expected: ErrorCode
) -> None:
    assert say(member, *batches) is expected
    assert is_open(member) == [0, 1, 2, 3]


def test_an_offset_can_be_renewed_and_given_up_in_one_request(member: Member) -> None:
    assert say(member, (0, 1, (RENEW,)), (1, 3, (GAP,)), renew=True) is NONE
    assert say(member, (1, 1, (ACCEPT,))) is INVALID_STATE
    assert say(member, (0, 0, (ACCEPT,))) is NONE


def test_gaps_in_a_group_without_renewals(bootstrap: str, member: Member) -> None:
    configured_group(bootstrap, member.group, **{"share.renew.acknowledge.enable": "false"})
    assert say(member, (0, 1, (GAP, RENEW)), renew=True) is INVALID_STATE
    assert say(member, (0, 3, (GAP, ACCEPT, GAP, ACCEPT)), renew=True) is NONE


def test_a_gap_of_another_member(bootstrap: str, member: Member) -> None:
    with Wire(bootstrap) as wire:
        other = Member(wire, member.group, member.topic, "other")
        other.heartbeat()
        assert other.acquire(records_max=1) == [(4, 4, 1)]
        assert say(other, (3, 4, (GAP,))) is INVALID_STATE
        assert say(other, (4, 4, (GAP,))) is NONE
    assert is_open(member) == [0, 1, 2, 3]


def transaction(bootstrap: str, topic: str, *values: str, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(TIMEOUT_S) == 0
    if commit:
        producer.commit_transaction(TIMEOUT_S)
    else:
        producer.abort_transaction(TIMEOUT_S)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_transactions_are_read_to_their_end(
    bootstrap: str, create_topic: CreateTopic, new_member: NewMember, isolation: str
) -> None:
    """The broker may deliver the markers as offsets without a record, or skip them."""
    member = read_transactions(bootstrap, create_topic(), new_member, isolation)
    assert member.acquire(wait_ms=0) == []


@pytest.mark.usefixtures("own_broker")  # Kafka moves the start later.
def test_behind_transactions_nothing_is_left(
    bootstrap: str, create_topic: CreateTopic, new_member: NewMember
) -> None:
    member = read_transactions(bootstrap, create_topic(), new_member, "read_committed")
    assert described(member) == (6, 0)


def read_transactions(bootstrap: str, topic: str, new_member: NewMember, isolation: str) -> Member:
    transaction(bootstrap, topic, "a", "b", commit=True)  # 0 and 1, and a marker.
    transaction(bootstrap, topic, "c", commit=False)  # 3, and a marker.
    produce(bootstrap, topic, "d")  # 5.
    member = new_member(topic)
    configured_group(bootstrap, member.group, **{"share.isolation.level": isolation})
    holds_record = {0, 1, 5} if isolation == "read_committed" else {0, 1, 3, 5}
    found: set[int] = set()
    while not holds_record <= found:
        acquired = member.acquire()
        for first, last, _ in acquired:
            found.update(range(first, last + 1))
            types = [ACCEPT if it in holds_record else GAP for it in range(first, last + 1)]
            assert say(member, (first, last, tuple(types))) is NONE
    assert found <= {0, 1, 2, 3, 4, 5}
    return member
