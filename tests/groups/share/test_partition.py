"""What one share-partition hands out, takes back and stores."""

from typing import Any

import pytest
from kio.static.primitive import i8, i16, i64
from tests.groups.share.kit import Leader

from ottla.groups.share.acquisition import AcquiredRange, DeliveryRules, LogBatch
from ottla.groups.share.delivery import (
    Acknowledgement,
    AcknowledgeType,
    DeadLetter,
    DeadLetterReason,
    DeliveryState,
    StateBatch,
)
from ottla.groups.share.partition import Change, SharePartition
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.delivery_acknowledge import Delivery, DeliveryAcknowledgeType

ACCEPT = (AcknowledgeType.ACCEPT,)
RELEASE = (AcknowledgeType.RELEASE,)
REJECT = (AcknowledgeType.REJECT,)
RENEW = (AcknowledgeType.RENEW,)
GAP = (AcknowledgeType.GAP,)
AVAILABLE = DeliveryState.AVAILABLE
ACQUIRED = DeliveryState.ACQUIRED
ACKNOWLEDGED = DeliveryState.ACKNOWLEDGED
ARCHIVING = DeliveryState.ARCHIVING
ARCHIVED = DeliveryState.ARCHIVED


def runs(leader: Leader) -> list[tuple[int, int, DeliveryState, int]]:
    return [
        (run.first_offset, run.last_offset, run.state, run.delivery_count)
        for run in leader.partition.runs()
    ]


def refusal(
    leader: Leader, member: str, *acknowledgements: tuple[int, int, tuple[int, ...]]
) -> ErrorCode:
    before = runs(leader)
    with pytest.raises(ApiError) as refused:
        leader.acknowledge(member, *acknowledgements)
    assert runs(leader) == before
    return refused.value.code


def test_whole_batches_pass_the_record_limit() -> None:
    leader = Leader()
    leader.append(5)
    leader.append(5)
    leader.append(5)

    assert leader.acquire("a", 6) == (AcquiredRange(0, 9, 1),)
    assert leader.partition.fetch_offset() == 10


def test_ranges_end_with_a_batch_when_they_are_large_enough() -> None:
    leader = Leader()
    for count in (5, 5, 5, 30, 2, 2):
        leader.append(count)

    assert leader.acquire("a", batch_size=7) == (
        AcquiredRange(0, 9, 1),
        AcquiredRange(10, 44, 1),
        AcquiredRange(45, 48, 1),
    )


def test_ranges_of_records_that_come_again_end_with_a_batch_as_well() -> None:
    leader = Leader()
    leader.append(5)
    leader.append(5)
    leader.acquire("a")
    leader.partition.release_member("a", 0)

    assert leader.acquire("b", batch_size=1) == (AcquiredRange(0, 4, 2), AcquiredRange(5, 9, 2))


def test_the_record_limit_cuts_a_batch() -> None:
    leader = Leader()
    leader.append(5)
    leader.append(5)

    assert leader.acquire("a", 6, batch_size=None) == (AcquiredRange(0, 5, 1),)
    assert leader.acquire("b", 2, batch_size=None) == (AcquiredRange(6, 7, 1),)


def test_two_members_get_different_records() -> None:
    leader = Leader()
    leader.append(3)
    leader.append(3)

    assert leader.acquire("a", 1) == (AcquiredRange(0, 2, 1),)
    assert leader.acquire("b", 1) == (AcquiredRange(3, 5, 1),)
    assert leader.acquire("a") == ()


def test_accepting_from_the_start_moves_it() -> None:
    leader = Leader()
    leader.append(10)
    leader.acquire("a")
    partition = leader.partition

    change = partition.acknowledge("a", [Acknowledgement(0, 3, ACCEPT)], leader.now_ms)

    assert change == Change(4)
    assert partition.start_offset == 4


def test_accepting_later_records_is_written_and_waits_for_the_start() -> None:
    leader = Leader()
    leader.append(10)
    leader.acquire("a")

    change = leader.partition.acknowledge("a", [Acknowledgement(4, 5, ACCEPT)], leader.now_ms)

    assert change == Change(0, (StateBatch(4, 5, ACKNOWLEDGED, 1),))
    assert leader.partition.delivery_complete_count == 2
    leader.acknowledge("a", (0, 3, ACCEPT))
    assert leader.partition.start_offset == 6


def test_types_by_record() -> None:
    leader = Leader()
    leader.append(5)
    leader.acquire("a")

    leader.acknowledge("a", (0, 4, (*ACCEPT, *RELEASE, *RELEASE, *REJECT, *GAP)))

    assert runs(leader) == [
        (1, 2, AVAILABLE, 1),
        (3, 4, ARCHIVED, 1),
    ]


def test_released_records_come_first_and_count() -> None:
    leader = Leader()
    leader.append(4)
    leader.append(4)
    leader.acquire("a", 1)
    leader.acknowledge("a", (1, 2, RELEASE))

    assert leader.acquire("b") == (AcquiredRange(1, 2, 2), AcquiredRange(4, 7, 1))


def test_a_lock_that_times_out_gives_the_record_to_another() -> None:
    leader = Leader(lock_duration_ms=1_000)
    leader.append(2)
    leader.acquire("a")
    leader.advance(999)
    assert leader.acquire("b") == ()

    leader.advance(1)

    assert leader.acquire("b") == (AcquiredRange(0, 1, 2),)
    assert refusal(leader, "a", (0, 1, ACCEPT)) is ErrorCode.invalid_record_state


def test_renewing_a_lock_writes_nothing() -> None:
    leader = Leader(lock_duration_ms=1_000)
    leader.append(2)
    leader.acquire("a")
    leader.advance(600)

    change = leader.partition.acknowledge("a", [Acknowledgement(0, 1, RENEW)], leader.now_ms)

    assert not change.is_written
    assert leader.partition.next_timeout_ms(0) == 1_600
    leader.advance(600)
    assert runs(leader) == [(0, 1, ACQUIRED, 1)]


def test_the_delivery_count_limit_archives() -> None:
    leader = Leader(delivery_count_limit=2)
    leader.append(1)
    leader.acquire("a")
    leader.acknowledge("a", (0, 0, RELEASE))
    leader.acquire("b")
    leader.release("b")

    assert leader.partition.start_offset == 1
    assert leader.dead_letters == []


def test_a_dead_letter_holds_the_start_until_it_is_written() -> None:
    leader = Leader(delivery_count_limit=1, dead_letters=True)
    leader.append(3)
    leader.acquire("a")
    leader.acknowledge("a", (0, 0, ACCEPT), (1, 1, RELEASE), (2, 2, ACCEPT))

    letter = DeadLetter(1, 1, 1, DeadLetterReason.DELIVERY_COUNT)
    assert leader.dead_letters == [letter]
    assert runs(leader) == [(1, 1, ARCHIVING, 1), (2, 2, ACKNOWLEDGED, 1)]
    leader.load()
    assert leader.dead_letters == [letter]
    assert leader.acquire("b") == ()

    leader.write_dead_letters()

    assert leader.partition.start_offset == 3


def test_rejected_records_are_dead_letters_if_that_is_wanted() -> None:
    leader = Leader(dead_letters=True, dead_letters_of_rejected=True)
    leader.append(2)
    leader.acquire("a")
    leader.acknowledge("a", (0, 1, REJECT))

    assert leader.dead_letters == [DeadLetter(0, 1, 1, DeadLetterReason.REJECTED)]


def test_a_rejection_of_the_last_delivery_is_told_as_one() -> None:
    leader = Leader(delivery_count_limit=1, dead_letters=True, dead_letters_of_rejected=True)
    leader.append(2)
    leader.acquire("a")
    leader.acknowledge("a", (0, 0, REJECT), (1, 1, RELEASE))

    assert [letter.reason for letter in leader.partition.archiving()] == [
        DeadLetterReason.REJECTED,
        DeadLetterReason.DELIVERY_COUNT,
    ]


def test_delivery_goes_on_while_dead_letters_wait_up_to_a_bound() -> None:
    leader = Leader(
        record_locks_max=2, left_behind_max=4, dead_letters=True, dead_letters_of_rejected=True
    )
    for _ in range(9):
        leader.append(1)
    for offset in range(6):
        assert leader.acquire("a", records_max=1) == (AcquiredRange(offset, offset, 1),)
        assert not leader.partition.waits_for_dead_letters
        leader.acknowledge("a", (offset, offset, ACCEPT if offset % 2 else REJECT))

    assert leader.partition.fetch_offset() is None
    waited = [leader.partition.waits_for_dead_letters]
    leader.load()
    waited.append(leader.partition.waits_for_dead_letters)
    assert waited == [True, True]

    leader.write_dead_letters()

    assert not leader.partition.waits_for_dead_letters
    assert leader.acquire("a", records_max=1) == (AcquiredRange(6, 6, 1),)


def test_records_in_flight_are_bounded_before_dead_letters_too() -> None:
    leader = Leader(record_locks_max=2, dead_letters=True, dead_letters_of_rejected=True)
    for _ in range(5):
        leader.append(1)
    leader.acquire("a", records_max=1)
    leader.acquire("a", records_max=1)
    leader.acknowledge("a", (1, 1, REJECT))

    assert leader.partition.fetch_offset() is None
    assert not leader.partition.waits_for_dead_letters
    leader.acknowledge("a", (0, 0, ACCEPT))
    assert leader.acquire("a", records_max=1) == (AcquiredRange(2, 2, 1),)


def test_a_limit_that_was_lowered_holds_for_records_that_wait() -> None:
    leader = Leader(delivery_count_limit=3)
    leader.append(2)
    for _ in range(2):
        leader.acquire("a")
        leader.release("a")
    leader.partition.rules = DeliveryRules(delivery_count_limit=2)

    assert leader.acquire("a") == ()
    assert leader.partition.start_offset == 2


def test_too_many_in_flight() -> None:
    leader = Leader(record_locks_max=4)
    leader.append(3)
    leader.append(3)
    leader.append(3)

    assert leader.acquire("a") == (AcquiredRange(0, 5, 1),)
    assert leader.partition.fetch_offset() is None
    leader.acknowledge("a", (0, 2, ACCEPT))
    assert leader.acquire("b") == (AcquiredRange(6, 8, 1),)


def test_control_records_and_holes_are_passed_over() -> None:
    leader = Leader()
    leader.append(2)
    leader.append(1, deliverable=False)
    leader.append(2, hole=3)

    assert leader.acquire("a") == (AcquiredRange(0, 1, 1), AcquiredRange(6, 7, 1))
    assert runs(leader)[1] == (2, 5, ARCHIVED, 0)
    leader.acknowledge("a", (0, 1, ACCEPT))
    assert leader.partition.start_offset == 6


def test_a_new_leader_has_the_counts_and_no_locks() -> None:
    leader = Leader()
    leader.append(6)
    leader.acquire("a")
    leader.acknowledge("a", (2, 3, ACCEPT))

    leader.load()

    assert runs(leader) == [
        (0, 1, AVAILABLE, 1),
        (2, 3, ACKNOWLEDGED, 1),
        (4, 5, AVAILABLE, 1),
    ]
    assert leader.acquire("b") == (AcquiredRange(0, 1, 2), AcquiredRange(4, 5, 2))


def test_what_was_not_written_about_is_available() -> None:
    written = [StateBatch(12, 13, ACKNOWLEDGED, 1), StateBatch(8, 10, ARCHIVED, 2)]
    partition = SharePartition(8, written, DeliveryRules())

    found = [(run.first_offset, run.last_offset, run.state) for run in partition.runs()]
    assert found == [(11, 11, AVAILABLE), (12, 13, ACKNOWLEDGED)]
    assert partition.end_offset == 14


def test_retention_takes_records_away() -> None:
    leader = Leader()
    leader.append(10)
    leader.acquire("a", 3, batch_size=None)

    assert leader.partition.on_log_start(2) == Change(2)
    leader.acknowledge("a", (0, 2, ACCEPT))
    assert leader.partition.start_offset == 3
    assert leader.partition.on_log_start(20) == Change(20)
    assert leader.partition.end_offset == 20


@pytest.mark.parametrize(
    ("acknowledgements", "code"),
    [
        ([(0, 1, (9,))], ErrorCode.invalid_request),
        ([(0, 1, ())], ErrorCode.invalid_request),
        ([(0, 3, (1, 1))], ErrorCode.invalid_request),
        ([(1, 0, ACCEPT)], ErrorCode.invalid_request),
        ([(2, 3, ACCEPT), (0, 1, ACCEPT)], ErrorCode.invalid_request),
        ([(0, 2, ACCEPT), (1, 3, ACCEPT)], ErrorCode.invalid_request),
        ([(0, 2, ACCEPT), (2, 3, ACCEPT)], ErrorCode.invalid_record_state),
        ([(0, 10, ACCEPT)], ErrorCode.invalid_request),
        ([(0, 0, ACCEPT), (3, 4, ACCEPT)], ErrorCode.invalid_record_state),
    ],
)
def test_acknowledgements_that_are_refused_change_nothing(
    acknowledgements: list[tuple[int, int, tuple[int, ...]]], code: ErrorCode
) -> None:
    leader = Leader()
    leader.append(10)
    leader.acquire("a", 4, batch_size=None)
    leader.acquire("b")

    assert refusal(leader, "a", *acknowledgements) is code


def test_an_offset_that_was_renewed_can_be_acknowledged_in_the_same_request() -> None:
    leader = Leader()
    leader.append(5)
    leader.acquire("a")

    leader.acknowledge("a", (0, 1, RENEW), (1, 4, GAP))

    assert runs(leader) == [(0, 0, ACQUIRED, 1), (1, 4, ARCHIVED, 1)]
    assert refusal(leader, "a", (0, 0, GAP), (0, 0, RENEW)) is ErrorCode.invalid_record_state


def test_a_held_record_is_done_once() -> None:
    leader = Leader()
    leader.append(5)
    leader.acquire("a", hold_ms=1_000)

    assert refusal(leader, "a", (0, 1, GAP), (1, 2, GAP)) is ErrorCode.invalid_record_state
    leader.acknowledge("a", (0, 1, RENEW), (1, 4, GAP))
    assert leader.partition.parked_count == 1


def test_nothing_can_be_acknowledged_when_nothing_is_in_flight() -> None:
    leader = Leader()
    leader.append(5)
    assert refusal(leader, "a", (0, 0, GAP)) is ErrorCode.invalid_record_state
    leader.acquire("a")
    assert refusal(leader, "a", (5, 5, GAP)) is ErrorCode.invalid_request


def delivery(first: int, last: int, kind: DeliveryAcknowledgeType, **terms: Any) -> Delivery:
    return Delivery(
        first_offset=i64(first),
        last_offset=i64(last),
        holder="a",
        delivery_count=i16(1),
        type=i8(kind),
        **terms,
    )


def test_deliveries_that_are_settled_together_are_one_change() -> None:
    leader = Leader()
    leader.append(10)
    leader.acquire("a", 10)

    refused, change = leader.partition.acknowledge_deliveries(
        [
            delivery(4, 5, DeliveryAcknowledgeType.ACCEPT),
            delivery(5, 6, DeliveryAcknowledgeType.ACCEPT),
            delivery(7, 7, DeliveryAcknowledgeType.RELEASE, delay_ms=i64(0)),
            delivery(7, 7, DeliveryAcknowledgeType.ACCEPT),
        ],
        leader.now_ms,
        leader.end_offset,
    )

    assert [error and error.code for error in refused] == [
        None,
        ErrorCode.invalid_record_state,
        None,
        None,
    ]
    assert change == Change(
        0,
        (StateBatch(4, 5, ACKNOWLEDGED, 1), StateBatch(7, 7, ACKNOWLEDGED, 1)),
    )


def test_what_is_skipped_with_others_moves_the_start() -> None:
    leader = Leader()
    leader.append(10)
    leader.acquire("a", 10)

    refused, change = leader.partition.acknowledge_deliveries(
        [
            delivery(1, 1, DeliveryAcknowledgeType.ACCEPT),
            delivery(0, 10, DeliveryAcknowledgeType.SKIP),
            delivery(0, 3, DeliveryAcknowledgeType.SKIP),
            delivery(6, 6, DeliveryAcknowledgeType.ACCEPT),
        ],
        leader.now_ms,
        leader.end_offset,
    )

    assert [error and error.code for error in refused] == [
        None,
        ErrorCode.offset_not_available,
        None,
        None,
    ]
    assert change == Change(4, (StateBatch(6, 6, ACKNOWLEDGED, 1),))


def test_a_batch_that_was_read_before_others_took_it() -> None:
    """Between the read and the acquisition another fetch may have come."""
    leader = Leader()
    leader.append(4)
    leader.acquire("a", 2, batch_size=None)

    acquired, _ = leader.partition.acquire(
        "b", 0, [LogBatch(0, 3)], records_max=10, batch_size=500, now_ms=0
    )

    assert acquired == (AcquiredRange(2, 3, 1),)
