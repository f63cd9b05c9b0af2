"""The share coordinator: exact records, epochs, and what a new leader gets."""

from dataclasses import replace
from uuid import UUID

import pytest
from tests.groups.share.kit import CODEC, PLACE, ShareCoordinator

from ottla.groups.share.delivery import DeliveryState, StateBatch
from ottla.groups.share.parked import ARCHIVING_DUE_MS, ParkedChange, ParkedRecord
from ottla.groups.share.state_batches import combined
from ottla.groups.share.state_coordinator import (
    NO_OFFSET,
    SharePartitionKey,
    ShareState,
    StateWrite,
    parse_coordinator_key,
)
from ottla.groups.share.state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatchValue,
)
from ottla.machine.partitioning import partition_for
from ottla.machine.record import Record
from ottla.protocol.errors import ApiError, ErrorCode

NOW_MS = 77
AVAILABLE = DeliveryState.AVAILABLE
ACKNOWLEDGED = DeliveryState.ACKNOWLEDGED
SNAPSHOT_KEY = ShareSnapshotKey(group_id="g", topic_id=PLACE.topic_id, partition=0)
UPDATE_KEY = ShareUpdateKey(group_id="g", topic_id=PLACE.topic_id, partition=0)


def initialized(updates_per_snapshot: int = 3) -> ShareCoordinator:
    coordinator = ShareCoordinator(updates_per_snapshot)
    coordinator.run(coordinator.machine.initialize(PLACE, 5, 10, NOW_MS))
    return coordinator


def write(
    coordinator: ShareCoordinator,
    *batches: StateBatch,
    start_offset: int = -1,
    state_epoch: int = 5,
    leader_epoch: int = 2,
) -> None:
    request = StateWrite(state_epoch, leader_epoch, start_offset, batches)
    coordinator.run(coordinator.machine.write(PLACE, request, NOW_MS))


def state(coordinator: ShareCoordinator) -> ShareState:
    found = coordinator.run(coordinator.machine.read_summary(PLACE))
    assert isinstance(found, ShareState)
    return found


def snapshot(
    *batches: StateBatchValue, epoch: int = 0, leader_epoch: int = -1, start_offset: int = 10
) -> Record:
    return Record(
        SNAPSHOT_KEY,
        ShareSnapshotValue(
            snapshot_epoch=epoch,
            state_epoch=5,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            create_timestamp=NOW_MS,
            write_timestamp=NOW_MS,
            state_batches=batches,
        ),
    )


def test_records() -> None:
    coordinator = initialized(updates_per_snapshot=1)
    write(coordinator, StateBatch(10, 14, AVAILABLE, 1))
    write(coordinator, StateBatch(12, 12, ACKNOWLEDGED, 1), start_offset=11)

    assert coordinator.log == [
        snapshot(),
        Record(
            UPDATE_KEY,
            ShareUpdateValue(
                snapshot_epoch=0,
                leader_epoch=2,
                start_offset=-1,
                state_batches=(
                    StateBatchValue(
                        first_offset=10, last_offset=14, delivery_state=0, delivery_count=1
                    ),
                ),
            ),
        ),
        snapshot(
            StateBatchValue(first_offset=11, last_offset=11, delivery_state=0, delivery_count=1),
            StateBatchValue(first_offset=12, last_offset=12, delivery_state=2, delivery_count=1),
            StateBatchValue(first_offset=13, last_offset=14, delivery_state=0, delivery_count=1),
            epoch=1,
            leader_epoch=2,
            start_offset=11,
        ),
    ]


def test_bytes() -> None:
    """Written out by hand from Kafka's message definitions."""
    batch = StateBatchValue(first_offset=1, last_offset=2, delivery_state=4, delivery_count=3)
    key = ShareUpdateKey(group_id="g", topic_id=UUID(int=1), partition=7)
    value = ShareUpdateValue(
        snapshot_epoch=1,
        leader_epoch=2,
        start_offset=3,
        delivery_complete_count=4,
        state_batches=(batch,),
    )

    assert CODEC.encode(Record(key, value)) == (
        bytes.fromhex("0001 0001 67 00000000000000000000000000000001 00000007"),
        bytes.fromhex(
            "0000 00000001 00000002 0000000000000003"
            "02 0000000000000001 0000000000000002 04 0003 00"
            "01 00 04 00000004"
        ),
    )
    assert CODEC.encode(snapshot()) == (
        bytes.fromhex("0000 0001 67 00000000000000000000000000000001 00000000"),
        bytes.fromhex(
            "0000 00000000 00000005 ffffffff 000000000000000a"
            "000000000000004d 000000000000004d 01 00"
        ),
    )


def test_a_reload_gives_the_same_state() -> None:
    coordinator = initialized()
    for offset in range(10, 30):
        write(
            coordinator, StateBatch(offset, offset, AVAILABLE, offset % 3), start_offset=offset - 2
        )
    before = state(coordinator)

    coordinator.reload()

    assert state(coordinator) == before


def test_initializing_again_changes_nothing() -> None:
    coordinator = initialized()
    coordinator.run(coordinator.machine.initialize(PLACE, 5, 10, NOW_MS + 1))

    assert coordinator.log == [snapshot()]


def test_initializing_late_keeps_what_the_group_has_done() -> None:
    """As by a second heartbeat of the group, which had to wait for the share coordinator."""
    coordinator = ShareCoordinator()
    coordinator.run(coordinator.machine.initialize(PLACE, 5, NO_OFFSET, NOW_MS))
    write(coordinator, StateBatch(12, 12, ACKNOWLEDGED, 1), start_offset=11)
    before = state(coordinator)

    coordinator.run(coordinator.machine.initialize(PLACE, 5, NO_OFFSET, NOW_MS))
    assert state(coordinator) == before

    coordinator.run(coordinator.machine.initialize(PLACE, 6, NO_OFFSET, NOW_MS))
    assert (state(coordinator).start_offset, state(coordinator).batches) == (NO_OFFSET, ())


def test_new_offsets_fence_the_leader_that_works_on_the_old_ones() -> None:
    coordinator = initialized()
    write(coordinator, StateBatch(10, 11, ACKNOWLEDGED, 1))
    coordinator.run(coordinator.machine.initialize(PLACE, 6, 0, NOW_MS))

    assert state(coordinator).batches == ()
    with pytest.raises(ApiError) as refused:
        write(coordinator, start_offset=12)
    assert refused.value.code is ErrorCode.fenced_state_epoch
    with pytest.raises(ApiError) as refused:
        coordinator.machine.initialize(PLACE, 5, 0, NOW_MS)
    assert refused.value.code is ErrorCode.fenced_state_epoch


def test_a_new_leader_fences_the_old_one() -> None:
    coordinator = initialized()
    read = coordinator.run(coordinator.machine.read(PLACE, 3, NOW_MS))
    assert (read.start_offset, read.state_epoch, read.leader_epoch) == (10, 5, 3)

    coordinator.reload()

    with pytest.raises(ApiError) as refused:
        write(coordinator, start_offset=12, leader_epoch=2)
    assert refused.value.code is ErrorCode.fenced_leader_epoch
    with pytest.raises(ApiError) as refused:
        coordinator.machine.read(PLACE, 2, NOW_MS)
    assert refused.value.code is ErrorCode.fenced_leader_epoch


def counted(sequence: int, writer: int = 7) -> StateWrite:
    return StateWrite(5, 2, 10 + sequence, (), writer=writer, sequence=sequence)


def refused_write(coordinator: ShareCoordinator, request: StateWrite) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        coordinator.machine.write(PLACE, request, NOW_MS)
    return refused.value.code


def test_a_write_is_refused_when_one_before_it_is_missing() -> None:
    coordinator = initialized()
    machine = coordinator.machine
    coordinator.run(machine.read(PLACE, 2, NOW_MS, 7))
    coordinator.run(machine.write(PLACE, counted(0), NOW_MS))

    assert refused_write(coordinator, counted(2)) is ErrorCode.fenced_leader_epoch
    assert refused_write(coordinator, counted(0)) is ErrorCode.fenced_leader_epoch
    coordinator.run(machine.write(PLACE, counted(1), NOW_MS))
    assert state(coordinator).start_offset == 11


def test_a_write_that_comes_after_its_leader_has_read_anew_is_refused() -> None:
    coordinator = initialized()
    machine = coordinator.machine
    coordinator.run(machine.read(PLACE, 2, NOW_MS, 7))
    coordinator.run(machine.read(PLACE, 2, NOW_MS, 8))

    assert refused_write(coordinator, counted(0)) is ErrorCode.fenced_leader_epoch
    coordinator.run(machine.write(PLACE, counted(0, writer=8), NOW_MS))
    coordinator.run(machine.read(PLACE, 2, NOW_MS))  # For a reader.
    coordinator.run(machine.write(PLACE, counted(1, writer=8), NOW_MS))


def test_the_next_coordinator_takes_no_writes_before_it_was_read() -> None:
    coordinator = initialized()
    coordinator.run(coordinator.machine.read(PLACE, 2, NOW_MS, 7))
    coordinator.run(coordinator.machine.write(PLACE, counted(0), NOW_MS))
    coordinator.reload()

    assert refused_write(coordinator, counted(1)) is ErrorCode.fenced_leader_epoch


def test_dead_letters_that_wait_in_the_parking_lot_are_known() -> None:
    coordinator = initialized()
    assert list(coordinator.machine.with_waiting_letters()) == []
    for due_ms, waiting in ((NOW_MS, []), (ARCHIVING_DUE_MS, [PLACE])):
        parked = ParkedChange.of([ParkedRecord(10, due_ms, 1)])
        request = StateWrite(5, 2, 11, (), parked=parked)
        coordinator.run(coordinator.machine.write(PLACE, request, NOW_MS))
        assert list(coordinator.machine.with_waiting_letters()) == waiting


def test_deleted_state_is_gone() -> None:
    coordinator = initialized()
    coordinator.run(coordinator.machine.delete(PLACE))
    coordinator.run(coordinator.machine.delete(PLACE))

    assert coordinator.log[1:] == [Record(SNAPSHOT_KEY, None)]
    assert state(coordinator) == ShareState()
    with pytest.raises(ApiError) as read:
        coordinator.machine.read(PLACE, 0, NOW_MS)
    assert read.value.code is ErrorCode.invalid_request
    with pytest.raises(ApiError) as written:
        coordinator.machine.write(PLACE, StateWrite(0, 0, NO_OFFSET, ()), NOW_MS)
    assert written.value.code is ErrorCode.invalid_request


def test_partitions_that_do_not_exist_have_no_state() -> None:
    coordinator = ShareCoordinator()
    for share_partition in (PLACE._replace(topic_id=UUID(int=9)), PLACE._replace(partition=4)):
        with pytest.raises(ApiError) as refused:
            coordinator.machine.initialize(share_partition, 0, 0, NOW_MS)
        assert refused.value.code is ErrorCode.unknown_topic_or_partition


def test_the_key_of_a_coordinator() -> None:
    share_partition = SharePartitionKey("a:b", UUID("00112233-4455-6677-8899-aabbccddeeff"), 3)

    assert share_partition.coordinator_key == "a:b:ABEiM0RVZneImaq7zN3u_w:3"
    assert parse_coordinator_key(share_partition.coordinator_key) == share_partition
    assert 0 <= partition_for(share_partition.coordinator_key, 50) < 50
    for text in ("g", "g:t:1", "g:ABEiM0RVZneImaq7zN3u_w:x", ""):
        with pytest.raises(ApiError):
            parse_coordinator_key(text)


def test_states_that_were_rewritten_need_no_older_records() -> None:
    coordinator = initialized()
    write(coordinator, StateBatch(10, 14, AVAILABLE, 1), start_offset=10)
    coordinator.catalog.create("gone", 1)
    gone = PLACE._replace(topic_id=coordinator.catalog.topics["gone"][0])
    coordinator.run(coordinator.machine.initialize(gone, 1, 0, NOW_MS))
    del coordinator.catalog.topics["gone"]
    before = state(coordinator)
    count = len(coordinator.log)
    coordinator.run(
        coordinator.machine.rewrite(NOW_MS, list(coordinator.machine.share_partitions()))
    )

    coordinator.log = coordinator.log[count:]
    coordinator.reload()

    assert state(coordinator) == replace(before, snapshot_epoch=1, update_count=0)
    assert list(coordinator.machine.share_partitions()) == [PLACE]


def test_of_batches_that_overlap_the_later_one_counts() -> None:
    done = StateBatch(0, 9, DeliveryState.ACKNOWLEDGED, 1)
    failed = StateBatch(4, 5, DeliveryState.ARCHIVED, 2)
    after = done._replace(first_offset=12, last_offset=13)

    assert combined([after, failed]) == (failed, after)
    assert combined([done, failed, after]) == (
        done._replace(last_offset=3),
        failed,
        done._replace(first_offset=6),
        after,
    )
    assert combined([failed, done]) == (done,)
