from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32
from tests.replication.manager_kit import LAG_MAX_MS, ManagerKit, topic_id
from tests.replication.roles import followers_of, leader_of, proposed_isr
from tests.storage.batches import NOW_MS, produced

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    NO_LEADER,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.replication.followers import FollowerFetch
from ottla.replication.partition import Partition
from ottla.storage.appended import Appended
from ottla.storage.errors import StorageError


@pytest.fixture
def kit() -> ManagerKit:
    return ManagerKit()


def code_of(kit: ManagerKit, topic: str | UUID, index: int = 0) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        kit.replicas.find(topic, index)
    return refused.value.code


def state_of(kit: ManagerKit, topic: str) -> PartitionRecord:
    state = kit.image.partition(topic, 0)
    assert state is not None
    return state


def append(partition: Partition, *values: bytes) -> Appended:
    return leader_of(partition).append(*produced(*values), NOW_MS)


def test_what_this_broker_leads_is_found_by_name_and_by_id(kit: ManagerKit) -> None:
    kit.create("led")
    assert kit.take_heard() == [("following ended", "led-0"), ("elected", "led-0")]
    found = kit.replicas.find("led", 0)
    assert kit.replicas.find(topic_id("led"), 0) is found
    assert found.leader_epoch == 0
    assert leader_of(found).in_sync_replicas == (1, 2, 3)


def test_what_it_follows_is_not(kit: ManagerKit) -> None:
    kit.create("followed", leader=2)
    assert kit.take_heard() == [("following", "followed-0", 2)]
    assert code_of(kit, "followed") is ErrorCode.not_leader_or_follower


@pytest.mark.parametrize("leader", [1, 2])
def test_leader_and_follower_tell_a_client_of_another_epoch(kit: ManagerKit, leader: int) -> None:
    kit.create("topic", leader=3)
    kit.change("topic", leader=leader)

    def code(leader_epoch: int, follower: bool = False) -> ErrorCode:
        try:
            kit.replicas.find_in_epoch("topic", 0, leader_epoch, follower=follower)
        except ApiError as refused:
            return refused.code
        return ErrorCode.none

    found = ErrorCode.none if leader == 1 else ErrorCode.not_leader_or_follower
    assert [code(epoch) for epoch in (-1, 1)] == [found, found]
    assert [code(epoch, follower=True) for epoch in (-1, 1)] == [ErrorCode.none] * 2
    for follower in (False, True):
        assert code(0, follower=follower) is ErrorCode.fenced_leader_epoch
        assert code(2, follower=follower) is ErrorCode.unknown_leader_epoch


def test_partitions_of_others_have_no_log_here(kit: ManagerKit) -> None:
    kit.create("foreign", replicas=(2, 3))
    assert kit.take_heard() == []
    assert code_of(kit, "foreign") is ErrorCode.not_leader_or_follower
    assert code_of(kit, topic_id("foreign")) is ErrorCode.not_leader_or_follower
    assert code_of(kit, "foreign", 1) is ErrorCode.unknown_topic_or_partition
    assert kit.logs.get(TopicPartition("foreign", 0)) is None


def test_leadership_moves_and_comes_back(kit: ManagerKit) -> None:
    kit.create("topic")
    kit.take_heard()
    partition = kit.replicas.find("topic", 0)
    kit.change("topic", leader=2)
    assert kit.take_heard() == [("resigning", "topic-0"), ("following", "topic-0", 2)]
    assert partition.followers is None
    kit.change("topic", leader=3)
    assert kit.take_heard() == [("following", "topic-0", 3)]
    kit.change("topic", leader=1)
    assert kit.take_heard() == [("following ended", "topic-0"), ("elected", "topic-0")]
    assert kit.replicas.find("topic", 0) is partition
    assert partition.leader_epoch == 3


def test_operators_are_told_of_new_leaders_once(kit: ManagerKit) -> None:
    kit.listen_to_roles()
    kit.create("topic")
    kit.change("topic", isr=(1, 3))
    kit.change("topic", leader=2)
    kit.change("topic", isr=(2, 3))
    kit.change("topic", leader=NO_LEADER)
    reported = [heard for heard in kit.take_heard() if str(heard[0]).startswith("new")]
    assert reported == [
        ("new leader", "topic-0", 1),
        ("new isr", "topic-0", (1, 2, 3), (1, 3), "the controller has decided it"),
        ("new leader", "topic-0", 2),
        ("new leader", "topic-0", NO_LEADER),
    ]


def test_operators_are_told_why_an_in_sync_set_shrank(kit: ManagerKit) -> None:
    kit.listen_to_roles()
    kit.create("topic")
    append(kit.replicas.find("topic", 0), b"a")
    kit.clock.advance(LAG_MAX_MS + 1)
    kit.replicas.shrink_in_sync_sets()
    kit.change("topic", isr=(1,))
    reason = "a follower was behind for more than 1 s"
    assert ("new isr", "topic-0", (1, 2, 3), (1,), reason) in kit.take_heard()


def test_a_leader_that_stays_in_a_new_epoch_is_not_elected_again(kit: ManagerKit) -> None:
    kit.create("topic")
    partition = kit.replicas.find("topic", 0)
    followers = partition.followers
    kit.take_heard()
    kit.change("topic", leader=1)
    assert kit.take_heard() == []
    assert partition.leader_epoch == 1
    assert partition.followers is not followers


def test_a_follower_hears_nothing_of_changes_in_the_same_epoch(kit: ManagerKit) -> None:
    kit.create("topic", leader=2)
    kit.take_heard()
    kit.change("topic", isr=(2, 3))
    assert kit.take_heard() == []


def test_a_partition_without_a_leader_is_not_followed(kit: ManagerKit) -> None:
    kit.create("topic", leader=2)
    kit.take_heard()
    kit.change("topic", leader=NO_LEADER)
    assert kit.take_heard() == [("following ended", "topic-0")]
    kit.change("topic", leader=2)
    assert kit.take_heard() == [("following", "topic-0", 2)]


def test_the_in_sync_set_changes_within_the_epoch(kit: ManagerKit) -> None:
    kit.register(2, 3)
    kit.create("topic")
    partition = kit.replicas.find("topic", 0)
    append(partition, b"one")
    leader_of(partition).on_follower_fetch(FollowerFetch(2, 72, 1, 0), 0)
    assert partition.log.high_watermark == 0
    kit.change("topic", isr=(1, 2))
    assert partition.log.high_watermark == 1
    assert leader_of(partition).in_sync_replicas == (1, 2)


def test_a_late_follower_is_proposed_to_leave(kit: ManagerKit) -> None:
    kit.create("topic")
    partition = kit.replicas.find("topic", 0)
    append(partition, b"one")
    kit.take_heard()
    kit.clock.advance(LAG_MAX_MS)
    kit.replicas.shrink_in_sync_sets()
    assert kit.take_heard() == []
    kit.clock.advance(1)
    kit.replicas.shrink_in_sync_sets()
    assert kit.take_heard() == [("isr change", "topic-0")]
    assert proposed_isr(partition) == (1,)


@pytest.mark.parametrize(
    ("broker_epoch", "fenced", "joins"), [(72, False, True), (72, True, False), (71, False, False)]
)
def test_only_a_live_broker_in_its_present_life_joins(
    kit: ManagerKit, broker_epoch: int, fenced: bool, joins: bool
) -> None:
    kit.register(2, fenced=fenced)
    kit.create("topic", isr=(1,))
    fetch = FollowerFetch(2, broker_epoch, 0, 0)
    assert leader_of(kit.replicas.find("topic", 0)).on_follower_fetch(fetch, 0) is joins


def test_a_quiet_follower_joins_when_it_is_unfenced(kit: ManagerKit) -> None:
    kit.register(2, fenced=True)
    kit.create("topic", isr=(1,))
    partition = kit.replicas.find("topic", 0)
    assert not leader_of(partition).on_follower_fetch(FollowerFetch(2, 72, 0, 0), 0)
    kit.take_heard()
    kit.register(2)
    assert kit.take_heard() == [("isr change", "topic-0")]
    assert proposed_isr(partition) == (1, 2)


def test_a_near_follower_that_is_fenced_is_waited_for_no_longer(kit: ManagerKit) -> None:
    kit.register(2)
    kit.create("topic", isr=(1,))
    partition = kit.replicas.find("topic", 0)
    leader_of(partition).on_follower_fetch(FollowerFetch(2, 72, 0, 0), 0)
    proposed = followers_of(partition).pending
    assert proposed is not None
    followers_of(partition).on_refused(proposed, 0)
    append(partition, b"one")
    assert partition.log.high_watermark == 0
    kit.register(2, fenced=True)
    assert partition.log.high_watermark == 1


def test_a_single_replica_has_no_followers_until_it_gets_some(kit: ManagerKit) -> None:
    kit.register(2)
    kit.create("topic", replicas=(1,))
    partition = kit.replicas.find("topic", 0)
    append(partition, b"one")
    assert partition.followers is None
    assert partition.log.high_watermark == 1
    kit.change("topic", replicas=(1, 2), adding_replicas=(2,))
    assert not leader_of(partition).on_follower_fetch(FollowerFetch(2, 72, 0, 0), 0)
    assert leader_of(partition).on_follower_fetch(FollowerFetch(2, 72, 1, 0), 0)


def test_a_partition_that_is_reassigned_is_removed_with_its_log(kit: ManagerKit) -> None:
    kit.create("topic")
    kit.create("topic", index=1)
    kit.take_heard()
    kit.change("topic", replicas=(2, 3, 4), leader=2)
    assert kit.take_heard() == [("following ended", "topic-0"), ("resigning", "topic-0")]
    assert code_of(kit, "topic") is ErrorCode.not_leader_or_follower
    assert kit.logs.get(TopicPartition("topic", 0)) is None
    assert kit.replicas.find("topic", 1).is_leader


def test_a_partition_that_was_reassigned_while_away_is_removed(kit: ManagerKit) -> None:
    kit.create("topic")
    kit.logs.stop()
    again = ManagerKit(kit.disk)
    kit.change("topic", replicas=(2, 3, 4), leader=2)
    again.replicas.load(kit.image)
    assert again.logs.get(TopicPartition("topic", 0)) is None


def test_a_removed_topic_is_forgotten_with_its_logs(kit: ManagerKit) -> None:
    kit.create("topic", leader=2)
    kit.create("topic", index=1)
    kit.remove("topic")
    assert kit.find_partition("topic", 0) is kit.find_partition("topic", 1) is None
    assert code_of(kit, "topic") is ErrorCode.unknown_topic_or_partition
    assert code_of(kit, topic_id("topic")) is ErrorCode.unknown_topic_id
    assert list(kit.logs.logs()) == []


def test_a_whole_image_is_as_good_as_its_records(kit: ManagerKit) -> None:
    """Removed replicas are stopped, new ones started, moved ones moved."""
    for name in ("stays", "moves", "goes"):
        kit.create(name)
    kit.take_heard()
    new = ManagerKit()
    new.create("stays")
    new.create("moves", leader=2)
    new.create("comes", leader=3)
    kit.replicas.load(new.image)
    assert kit.take_heard() == [
        ("following ended", "goes-0"),
        ("resigning", "goes-0"),
        ("resigning", "moves-0"),
        ("following", "moves-0", 2),
        ("following", "comes-0", 3),
    ]
    assert kit.replicas.find("stays", 0).is_leader
    assert kit.logs.get(TopicPartition("goes", 0)) is None


def test_a_topic_that_was_made_anew_begins_with_an_empty_log(kit: ManagerKit) -> None:
    kit.create("topic", replicas=(1,))
    append(kit.replicas.find("topic", 0), b"one")
    other_id = topic_id("again")
    image = MetadataImage()
    image.replay(TopicRecord(name=TopicName("topic"), topic_id=other_id))
    image.replay(replace(state_of(kit, "topic"), topic_id=other_id))
    kit.replicas.load(image)
    assert kit.replicas.find("topic", 0).log.log_end_offset == 0
    assert kit.replicas.find(other_id, 0) is kit.replicas.find("topic", 0)
    assert code_of(kit, topic_id("topic")) is ErrorCode.unknown_topic_id


def test_after_a_start_what_was_deleted_goes_and_what_nobody_knows_is_set_aside() -> None:
    kit = ManagerKit()
    for name in ("deleted", "unknown", "again"):
        kit.create(name, replicas=(1,))
        append(kit.replicas.find(name, 0), name.encode())
    kit.logs.flush()
    kit.disk.kill()
    new = ManagerKit(kit.disk)
    image = MetadataImage()
    image.replay(TopicRecord(name=TopicName("again"), topic_id=topic_id("other")))
    image.replay(replace(state_of(kit, "again"), topic_id=topic_id("other")))
    new.replicas.load(image, {topic_id("deleted")})
    names = new.disk.list("/data")
    assert [name.partition(".")[0] for name in names if name.endswith("-delete")] == ["deleted-0"]
    strays = [name.partition(".")[0] for name in names if name.endswith("-stray")]
    assert strays == ["again-0", "unknown-0"]
    assert new.replicas.find("again", 0).log.log_end_offset == 0


def test_leadership_that_others_had_meanwhile_is_taken_up_anew(kit: ManagerKit) -> None:
    """A whole image does not contain the leaders of the epochs in between."""
    kit.create("topic")
    new = ManagerKit()
    new.create("topic")
    new.change("topic", leader=2)
    new.change("topic", leader=1)
    kit.take_heard()
    kit.replicas.load(new.image)
    assert kit.take_heard() == [
        ("resigning", "topic-0"),
        ("following ended", "topic-0"),
        ("elected", "topic-0"),
    ]


def corrupt(kit: ManagerKit) -> ManagerKit:
    """Broker 1 returns with a damaged log; the others have one more record."""
    kit.create("topic")
    partition = kit.replicas.find("topic", 0)
    append(partition, b"x" * 40)
    kit.logs.flush()
    kit.logs.checkpoint()
    kit.disk.flip_bit(partition.log.segments[0].path, 100)
    kit.disk.crash()
    return ManagerKit(kit.disk)


def test_a_damaged_log_is_copied_anew_from_the_leader(
    kit: ManagerKit, nothing_is_passed_over: None
) -> None:
    again = corrupt(kit)
    kit.change("topic", leader=2)
    again.replicas.load(kit.image)
    assert again.take_heard() == [("following", "topic-0", 2)]
    assert again.partition("topic").log.log_end_offset == 0
    assert [name for name in kit.disk.list("/data") if name.endswith("-stray")]


@pytest.mark.parametrize("leader", [1, NO_LEADER])
def test_a_damaged_log_that_nobody_can_replace_is_not_served(
    kit: ManagerKit, leader: int, nothing_is_passed_over: None
) -> None:
    again = corrupt(kit)
    kit.change("topic", leader=leader)
    again.replicas.load(kit.image)
    assert again.take_heard() == []
    assert code_of(again, "topic") is ErrorCode.kafka_storage_error
    # Until another broker leads.
    kit.change("topic", leader=3)
    again.replicas.on_record(
        PartitionChangeRecord(partition_id=i32(0), topic_id=topic_id("topic")), kit.image
    )
    assert again.take_heard() == [("following", "topic-0", 3)]


def test_a_directory_that_fails_takes_its_partitions_with_it_and_no_others() -> None:
    kit = ManagerKit(directories=("/a", "/b"))
    kit.register(2, 3)
    for index in range(2):
        kit.create("orders", leader=1, index=index)
    log_directory = kit.partition("orders").log.log_directory
    kit.take_heard()
    error = log_directory.on_error(OSError(5, "Input/output error"))
    assert isinstance(error, StorageError)
    kit.replicas.on_directory_failure(error)
    assert kit.take_heard() == [("following ended", "orders-0"), ("resigning", "orders-0")]
    with pytest.raises(ApiError, match="Input/output error") as refused:
        kit.replicas.find("orders", 0)
    assert refused.value.code is ErrorCode.kafka_storage_error
    assert kit.replicas.find("orders", 1).is_leader
    kit.replicas.retry_refused()
    kit.change("orders", leader=2)
    assert kit.find_partition("orders") is None  # It is not created again elsewhere.


def test_a_replica_that_may_be_in_a_directory_that_is_offline_is_not_made_anew() -> None:
    kit = ManagerKit(directories=("/a", "/b"))
    kit.register(2, 3)
    first = kit.logs.log_dirs.ids["/a"]
    next(iter(kit.logs.log_dirs)).on_error(OSError(5, "Input/output error"))
    kit.create("orders", leader=2)
    assert kit.partition("orders").log.log_directory.path == "/b"
    kit.record(TopicRecord(name=TopicName("there"), topic_id=topic_id("there")))
    kit.record(
        PartitionRecord(
            partition_id=i32(0),
            topic_id=topic_id("there"),
            replicas=(BrokerId(1), BrokerId(2)),
            isr=(BrokerId(2),),
            leader=BrokerId(2),
            directories=(first, UUID(int=1)),
        )
    )
    with pytest.raises(ApiError, match="in a log directory that is offline"):
        kit.replicas.find_readable("there", 0)
