from typing import Any
from uuid import UUID

import pytest
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ottla.controller.partition_change import Departure, Election, PartitionChange
from ottla.controller.records import PartitionChangeRecord, PartitionRecord

TOPIC = UUID(int=1)


def partition(**fields: Any) -> PartitionRecord:
    defaults: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1}
    return PartitionRecord(partition_id=i32(0), topic_id=TOPIC, **(defaults | fields))


def change_of(
    old: PartitionRecord, *active: int, min_isr: int = 1, **options: Any
) -> PartitionChange:
    return PartitionChange(old, active.__contains__, min_isr, **options)


def record(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=i32(0), topic_id=TOPIC, **fields)


def after_loss_of(
    broker_id: int,
    old: PartitionRecord,
    *active: int,
    departure: Departure = Departure.INTACT,
    **options: Any,
) -> PartitionChangeRecord | None:
    change = change_of(old, *active, **options)
    change.remove(broker_id, departure)
    return change.record()


def test_nothing_wanted_is_no_record() -> None:
    assert change_of(partition(), 1, 2, 3).record() is None


def test_a_follower_that_goes_leaves_the_leader_alone() -> None:
    assert after_loss_of(3, partition(), 1, 2) == record(isr=(1, 2))


def test_the_first_replica_in_sync_leads_next() -> None:
    old = partition(replicas=(1, 3, 2), isr=(1, 2))
    assert after_loss_of(1, old, 2, 3) == record(isr=(2,), leader=2)


def test_who_leaves_a_set_that_is_too_small_is_eligible() -> None:
    old = partition(isr=(1, 2))
    assert after_loss_of(2, old, 1, min_isr=2) == record(isr=(1,), eligible_leader_replicas=(2,))


def test_who_leaves_a_set_that_is_large_enough_is_not_eligible() -> None:
    assert after_loss_of(3, partition(), 1, 2, min_isr=2) == record(isr=(1, 2))


def test_eligible_leaders_lead_when_nobody_is_in_sync() -> None:
    old = partition(isr=(1,), eligible_leader_replicas=(2, 3))
    assert after_loss_of(1, old, 3, min_isr=3) == record(
        isr=(3,), leader=3, eligible_leader_replicas=(2, 1)
    )


def test_eligible_leaders_wait_while_somebody_is_in_sync() -> None:
    old = partition(isr=(1,), leader=-1, eligible_leader_replicas=(2,))
    assert change_of(old, 2, min_isr=2).record() is None


def test_without_anyone_the_last_leader_is_remembered() -> None:
    old = partition(isr=(1,), eligible_leader_replicas=(2,))
    assert after_loss_of(1, old, min_isr=2) == record(
        isr=(), leader=-1, eligible_leader_replicas=(2, 1), last_known_elr=(1,)
    )


def test_a_leader_ends_the_memory_of_the_last_one() -> None:
    old = partition(isr=(), leader=-1, eligible_leader_replicas=(2, 1), last_known_elr=(1,))
    assert change_of(old, 1, 2, min_isr=2).record() == record(
        isr=(1,), leader=1, eligible_leader_replicas=(2,), last_known_elr=()
    )


def test_a_set_that_grows_enough_forgets_the_eligible_ones() -> None:
    old = partition(isr=(1,), eligible_leader_replicas=(2,))
    change = change_of(old, 1, 3, min_isr=2)
    change.isr = (BrokerId(1), BrokerId(3))
    assert change.record() == record(isr=(1, 3), eligible_leader_replicas=())


def test_an_eligible_leader_that_acknowledges_alone_ends_the_eligibility_of_the_others() -> None:
    """The minimum was lowered while nobody was in sync: only this leader has new records."""
    old = partition(isr=(), leader=-1, eligible_leader_replicas=(2, 3), last_known_elr=(1,))
    assert change_of(old, 2, min_isr=1).record() == record(
        isr=(2,), leader=2, eligible_leader_replicas=(), last_known_elr=()
    )
    assert change_of(old, 2, min_isr=2).record() == record(
        isr=(2,), leader=2, eligible_leader_replicas=(3,), last_known_elr=()
    )


def test_the_minimum_is_never_more_than_there_are_replicas() -> None:
    old = partition(replicas=(1,), isr=(1,))
    assert change_of(old, 1, min_isr=3).record() is None


def test_replicas_that_are_being_added_do_not_raise_the_minimum() -> None:
    old = partition(isr=(1, 2), adding_replicas=(2, 3))
    assert after_loss_of(2, old, 1, min_isr=2) == record(isr=(1,))


@pytest.mark.parametrize("departure", [Departure.UNCLEAN, Departure.LOST])
def test_a_crashed_broker_is_not_eligible_where_others_are(departure: Departure) -> None:
    old = partition(isr=(1, 2))
    assert after_loss_of(2, old, 1, min_isr=2, departure=departure) == record(isr=(1,))
    old = partition(isr=(), leader=-1, eligible_leader_replicas=(2, 3), last_known_elr=(2,))
    assert after_loss_of(2, old, min_isr=2, departure=departure) == record(
        eligible_leader_replicas=(3,)
    )


def test_a_crashed_broker_stays_eligible_where_it_is_the_last() -> None:
    assert after_loss_of(1, partition(isr=(1,)), 2, departure=Departure.UNCLEAN) == record(
        isr=(), leader=-1, eligible_leader_replicas=(1,), last_known_elr=(1,)
    )


def test_a_lost_disk_leaves_nobody() -> None:
    assert after_loss_of(1, partition(isr=(1,)), 2, 3, departure=Departure.LOST) == record(
        isr=(), leader=-1, last_known_elr=(1,)
    )


def test_an_unclean_election_takes_whoever_led_last() -> None:
    old = partition(isr=(), leader=-1, eligible_leader_replicas=(), last_known_elr=(3,))
    assert change_of(old, 2, 3).record() is None
    unclean = change_of(old, 2, 3, election=Election.UNCLEAN).record()
    assert unclean == record(isr=(3,), leader=3, last_known_elr=(), leader_recovery_state=1)


def test_an_unclean_election_takes_any_active_replica() -> None:
    old = partition(isr=(), leader=-1, eligible_leader_replicas=(1,), last_known_elr=(1,))
    assert change_of(old, 2, 3, election=Election.UNCLEAN).record() == record(
        isr=(2,),
        leader=2,
        eligible_leader_replicas=(),
        last_known_elr=(),
        leader_recovery_state=1,
    )


def test_an_unclean_election_prefers_a_clean_one() -> None:
    old = partition(isr=(3,), leader=-1)
    assert change_of(old, 2, 3, election=Election.UNCLEAN).record() == record(leader=3)


def test_a_preferred_election_moves_the_leader_to_the_first_replica() -> None:
    old = partition(leader=2)
    assert change_of(old, 1, 2, election=Election.ONLINE).record() is None
    assert change_of(old, 1, 2, election=Election.PREFERRED).record() == record(leader=1)
    assert change_of(old, 2, 3, election=Election.PREFERRED).record() is None


def test_a_reassignment_ends_when_all_that_are_wanted_are_in_sync() -> None:
    old = partition(replicas=(4, 2, 1), isr=(1, 2), removing_replicas=(1,), adding_replicas=(4,))
    change = change_of(old, 1, 2, 4)
    change.isr = (BrokerId(1), BrokerId(2), BrokerId(4))
    assert change.record() == record(
        isr=(2, 4), leader=4, replicas=(4, 2), removing_replicas=(), adding_replicas=()
    )


def test_the_end_of_a_reassignment_fences_who_was_removed() -> None:
    old = partition(replicas=(1, 2, 3), isr=(1, 2), removing_replicas=(3,))
    assert change_of(old, 1, 2, 3).record() == record(
        leader=1, replicas=(1, 2), removing_replicas=()
    )


def test_who_is_removed_is_not_eligible() -> None:
    old = partition(
        replicas=(4, 1),
        isr=(1,),
        removing_replicas=(1,),
        adding_replicas=(4,),
        eligible_leader_replicas=(4,),
    )
    change = change_of(old, 1, 4, min_isr=2)
    change.isr = (BrokerId(1), BrokerId(4))
    assert change.record() == record(
        isr=(4,),
        leader=4,
        replicas=(4,),
        removing_replicas=(),
        adding_replicas=(),
        eligible_leader_replicas=(),
    )
