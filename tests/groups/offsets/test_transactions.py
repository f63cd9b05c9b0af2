"""TxnOffsetCommit, and the markers that decide."""

import pytest
from tests.groups.kit import Coordinator, Reply
from tests.groups.offsets.kit import end_transaction, transactional_commit, value

from ottla.groups.offsets.records import OffsetCommitRecord
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition


def test_offsets_of_a_transaction_count_when_it_commits() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1})

    transactional_commit(coordinator, 0, 9)

    record = OffsetCommitRecord("g", TopicPartition("t", 0), value(9))
    assert [*coordinator.last_records] == [Transactional(5, 1, record)]
    assert coordinator.offsets(("t", 0)) == {("t", 0): 1}
    end_transaction(coordinator, committed=True)
    assert coordinator.last_records == (TransactionMarker(5, 1, 0, True),)
    assert coordinator.offsets(("t", 0)) == {("t", 0): 9}


def test_offsets_of_an_aborted_transaction_are_gone() -> None:
    coordinator = Coordinator()
    transactional_commit(coordinator, 0, 9)

    end_transaction(coordinator, committed=False)

    assert coordinator.offsets(("t", 0)) == {("t", 0): -1}
    end_transaction(coordinator, committed=True)
    assert coordinator.offsets(("t", 0)) == {("t", 0): -1}


def test_a_later_plain_commit_stands_against_the_marker() -> None:
    coordinator = Coordinator()
    transactional_commit(coordinator, 0, 9)
    coordinator.commit({("t", 0): 10})

    end_transaction(coordinator, committed=True)

    assert coordinator.offsets(("t", 0)) == {("t", 0): 10}


def test_unstable_offsets_are_not_told_to_those_who_ask_for_stable_ones() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1, ("t", 1): 2})
    transactional_commit(coordinator, 0, 9)

    fetched = coordinator.fetch(("t", 0), ("t", 1), require_stable=True).topics[0].partitions

    assert [(item.committed_offset, item.error_code) for item in fetched] == [
        (-1, ErrorCode.unstable_offset_commit),
        (2, ErrorCode.none),
    ]
    end_transaction(coordinator, committed=False)
    stable = coordinator.fetch(("t", 0), require_stable=True).topics[0].partitions[0]
    assert (stable.committed_offset, stable.error_code) == (1, ErrorCode.none)


def test_pending_offsets_survive_a_change_of_coordinator() -> None:
    coordinator = Coordinator()
    transactional_commit(coordinator, 0, 9)
    coordinator.reload()

    end_transaction(coordinator, committed=True)

    assert coordinator.offsets(("t", 0)) == {("t", 0): 9}


def test_a_transaction_is_fenced_by_producer_epoch_and_generation() -> None:
    coordinator = Coordinator()
    transactional_commit(coordinator, 0, 9, epoch=2)

    assert coordinator.refusal(lambda: transactional_commit(coordinator, 0, 1, epoch=1)) is (
        ErrorCode.invalid_producer_epoch
    )
    assert coordinator.refusal(
        lambda: transactional_commit(coordinator, 0, 1, epoch=2, generation=3, member_id="m")
    ) is (ErrorCode.unknown_member_id)


def test_a_transaction_of_an_earlier_epoch_may_commit_what_its_member_kept() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")
    coordinator.beat("m", 2)
    coordinator.beat("m", 2, owned={("t", 0), ("t", 1)})

    def commit(partition: int, api_version: int) -> Reply:
        return transactional_commit(
            coordinator, partition, 9, generation=2, member_id="m", api_version=api_version
        )

    for version in (5, 6):
        assert commit(0, version).value.topics[0].partitions[0].error_code is ErrorCode.none
    assert coordinator.refusal(lambda: commit(2, 5)) is ErrorCode.illegal_generation
    assert coordinator.refusal(lambda: commit(2, 6)) is ErrorCode.stale_member_epoch


@pytest.mark.parametrize(
    ("api_version", "expected"),
    [(5, ErrorCode.illegal_generation), (6, ErrorCode.group_id_not_found)],
)
def test_a_transaction_needs_a_group_that_exists(api_version: int, expected: ErrorCode) -> None:
    coordinator = Coordinator()

    def commit() -> Reply:
        return transactional_commit(coordinator, 0, 1, generation=3, api_version=api_version)

    assert coordinator.refusal(commit) is expected


def test_a_transaction_of_an_anonymous_producer_may_commit_for_a_group_with_members() -> None:
    coordinator = Coordinator()
    coordinator.stable_group()

    transactional_commit(coordinator, 0, 3)
    end_transaction(coordinator, committed=True)

    assert coordinator.offsets(("t", 0)) == {("t", 0): 3}


def test_an_anonymous_producer_may_commit_for_members_of_the_new_protocol() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    transactional_commit(coordinator, 0, 3)
    end_transaction(coordinator, committed=True)

    assert coordinator.offsets(("t", 0)) == {("t", 0): 3}
    assert coordinator.refusal(lambda: coordinator.commit({("t", 0): 4})) is (
        ErrorCode.unknown_member_id
    )
