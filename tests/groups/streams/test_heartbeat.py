"""StreamsGroupHeartbeat, and the other streams group requests."""

from functools import partial

import pytest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListedGroup
from kio.schema.streams_group_describe.v0.response import DescribedGroup
from kio.schema.streams_group_heartbeat.v0.request import Endpoint
from kio.static.primitive import u16
from tests.groups.kit import Catalog, Coordinator
from tests.groups.offsets.kit import delete_offsets
from tests.groups.streams.kit import (
    COUNTS,
    ONE_PART,
    active,
    beat,
    beat_result,
    new_coordinator,
    part,
    statuses,
    topology,
)

from ottla.groups.streams.config import StreamsConfig
from ottla.groups.streams.tasks import TaskAssignment, tasks_of
from ottla.protocol.errors import ErrorCode


@pytest.fixture
def coordinator() -> Coordinator:
    return new_coordinator(Catalog(t=2))


def owning(*partitions: int) -> TaskAssignment:
    return TaskAssignment(tasks_of([("0", partitions)]))


def state_of(coordinator: Coordinator) -> str:
    request = ListGroupsRequest(types_filter=("streams",))
    listed: tuple[ListedGroup, ...] = coordinator.run(
        lambda _: coordinator.machine.list_groups(request)
    ).value
    (group,) = listed
    return group.group_state


def described(coordinator: Coordinator) -> tuple[DescribedGroup, ...]:
    groups: tuple[DescribedGroup, ...] = coordinator.run(
        lambda _: coordinator.machine.describe_streams_groups(["g"])
    ).value
    return groups


def test_offsets_of_a_group_that_is_empty_can_be_deleted(coordinator: Coordinator) -> None:
    epoch = beat(coordinator).member_epoch
    coordinator.commit({("t", 0): 1}, member_id="a", generation=epoch)
    refused = delete_offsets(coordinator, "t", 0).value.topics[0].partitions[0]
    assert refused.error_code is ErrorCode.group_subscribed_to_topic
    beat(coordinator, "a", -1)
    deleted = delete_offsets(coordinator, "t", 0).value.topics[0].partitions[0]
    assert deleted.error_code is ErrorCode.none
    assert coordinator.offsets() == {}


def test_who_is_alone_gets_every_task(coordinator: Coordinator) -> None:
    response = beat(coordinator)
    assert (response.member_epoch, active(response)) == (2, [("0", 0), ("0", 1)])
    assert statuses(response) == []
    assert state_of(coordinator) == "Stable"


def test_what_did_not_change_is_not_told(coordinator: Coordinator) -> None:
    epoch = beat(coordinator).member_epoch
    assert active(beat(coordinator, epoch=epoch)) is None
    assert coordinator.last_records == ()


def test_a_task_changes_hands_when_its_owner_has_given_it_up(coordinator: Coordinator) -> None:
    beat(coordinator)
    joined = beat(coordinator, "b")
    assert active(joined) == []
    revoked = beat(coordinator, "a", 2, owned=owning(0, 1))
    assert (revoked.member_epoch, active(revoked)) == (2, [("0", 0)])
    assert active(beat(coordinator, "b", joined.member_epoch)) is None
    assert beat(coordinator, "a", 2, owned=owning(0)).member_epoch == 3
    assert active(beat(coordinator, "b", joined.member_epoch)) == [("0", 1)]
    assert state_of(coordinator) == "Stable"


def test_who_does_not_give_up_in_time_is_removed(coordinator: Coordinator) -> None:
    beat(coordinator)
    epoch = beat(coordinator, "b").member_epoch
    beat(coordinator, "a", 2, owned=owning(0, 1))
    for _ in range(7):
        coordinator.advance(5_000)
        epoch = beat(coordinator, "b", epoch).member_epoch
    (group,) = described(coordinator)
    assert [member.member_id for member in group.members] == ["b"]


def test_who_is_silent_is_removed(coordinator: Coordinator) -> None:
    epoch = beat(coordinator).member_epoch
    coordinator.advance(45_000)
    again = coordinator.refusal(lambda: beat(coordinator, epoch=epoch))
    assert again is ErrorCode.unknown_member_id
    assert state_of(coordinator) == "Empty"


def test_who_leaves_makes_room(coordinator: Coordinator) -> None:
    beat(coordinator)
    joined = beat(coordinator, "b")
    assert beat(coordinator, "a", -1).member_epoch == -1
    assert active(beat(coordinator, "b", joined.member_epoch)) == [("0", 0), ("0", 1)]


def test_another_coordinator_goes_on(coordinator: Coordinator) -> None:
    epoch = beat(coordinator).member_epoch
    coordinator.reload()
    assert state_of(coordinator) == "Stable"
    assert active(beat(coordinator, epoch=epoch)) is None
    coordinator.advance(45_000)
    assert state_of(coordinator) == "Empty"


def test_a_new_group_waits_for_more_members() -> None:
    coordinator = new_coordinator(Catalog(t=2), StreamsConfig(initial_delay_ms=3_000))
    first = beat(coordinator, "a")
    assert (first.member_epoch, active(first), statuses(first)) == (1, [], [5])
    second = beat(coordinator, "b")
    coordinator.advance(3_000)
    response = beat(coordinator, "a", first.member_epoch)
    assert (active(response), statuses(response)) == ([("0", 0)], [])
    assert active(beat(coordinator, "b", second.member_epoch)) == [("0", 1)]


def test_missing_internal_topics_are_asked_for_and_then_used() -> None:
    catalog = Catalog(t=2)
    coordinator = new_coordinator(catalog)
    response, missing = beat_result(coordinator, of=COUNTS)
    assert [topic.name for topic in missing] == ["again", "state"]
    assert (active(response), statuses(response)) == ([], [3])
    assert state_of(coordinator) == "NotReady"
    catalog.create("again", 2)
    catalog.create("state", 2)
    ready = beat(coordinator, epoch=response.member_epoch)
    assert active(ready) == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]
    assert (statuses(ready), state_of(coordinator)) == ([], "Stable")


def test_missing_sources_are_named(coordinator: Coordinator) -> None:
    response = beat(coordinator, of=topology(part("0", "nowhere")))
    assert statuses(response) == [1]


def test_an_older_topology_is_stale_and_another_is_refused(coordinator: Coordinator) -> None:
    beat(coordinator, of=topology(part("0", "t"), epoch=3))
    assert statuses(beat(coordinator, "b", of=topology(part("0", "t"), epoch=2))) == [0]
    other = topology(part("other", "t"), epoch=3)
    refused = coordinator.refusal(lambda: beat(coordinator, "c", of=other))
    assert refused is ErrorCode.invalid_request


def test_standby_tasks_are_on_other_processes() -> None:
    config = StreamsConfig(initial_delay_ms=0, standby_count=1)
    coordinator = new_coordinator(Catalog(t=2), config)
    first = beat(coordinator, "a", process="p")
    assert first.standby_tasks == ()
    second = beat(coordinator, "b", process="q")
    beat(coordinator, "a", first.member_epoch, owned=owning(0, 1))
    first = beat(coordinator, "a", first.member_epoch, owned=owning(0))
    second = beat(coordinator, "b", second.member_epoch)
    assert active(second) == [("0", 1)]
    assert second.standby_tasks is not None
    (standby,) = second.standby_tasks
    assert (standby.subtopology_id, standby.partitions) == ("0", (0,))


def test_everyone_is_told_to_shut_down(coordinator: Coordinator) -> None:
    first = beat(coordinator, "a")
    second = beat(coordinator, "b")
    beat(coordinator, "a", first.member_epoch, shutdown_application=True)
    assert statuses(beat(coordinator, "b", second.member_epoch)) == [4]


def test_endpoints_of_processes(coordinator: Coordinator) -> None:
    endpoint = Endpoint(host="there", port=u16(8080))
    first = beat(coordinator, user_endpoint=endpoint)
    response = beat(coordinator, epoch=first.member_epoch)
    assert response.partitions_by_user_endpoint is not None
    (where,) = response.partitions_by_user_endpoint
    assert (where.user_endpoint.host, where.user_endpoint.port) == ("there", 8080)
    (topic,) = where.active_partitions
    assert (topic.topic, topic.partitions) == ("t", (0, 1))
    known = beat(
        coordinator, epoch=first.member_epoch, endpoint_epoch=response.endpoint_information_epoch
    )
    assert known.partitions_by_user_endpoint is None


def test_an_epoch_that_is_not_the_members_is_fenced(coordinator: Coordinator) -> None:
    epoch = beat(coordinator).member_epoch
    beat(coordinator, "b")
    for wrong in (epoch + 5, epoch - 1):
        refused = coordinator.refusal(partial(beat, coordinator, "a", wrong))
        assert refused is ErrorCode.fenced_member_epoch


def test_an_answer_that_was_lost_is_given_again(coordinator: Coordinator) -> None:
    beat(coordinator)
    joined = beat(coordinator, "b")
    beat(coordinator, "a", 2, owned=owning(0, 1))
    beat(coordinator, "a", 2, owned=owning(0))
    again = beat(coordinator, "a", 2, owned=owning(0))
    assert again.member_epoch == 3
    assert joined.member_epoch == 3


def test_other_types_of_groups_are_kept_apart(coordinator: Coordinator) -> None:
    beat(coordinator)
    classic = coordinator.refusal(lambda: coordinator.join("", group="g").value)
    assert classic is ErrorCode.inconsistent_group_protocol


def test_an_empty_classic_group_makes_way(coordinator: Coordinator) -> None:
    joined = coordinator.join("", group="g", version=3)
    coordinator.advance(3_000)
    coordinator.leave((joined.value.member_id, None))
    assert active(beat(coordinator)) == [("0", 0), ("0", 1)]


def test_a_group_without_members_can_be_deleted(coordinator: Coordinator) -> None:
    beat(coordinator)
    machine = coordinator.machine
    deleted = coordinator.run(lambda _: machine.delete_groups(["g"]))
    assert deleted.value[0].error_code is ErrorCode.non_empty_group
    beat(coordinator, "a", -1)
    deleted = coordinator.run(lambda _: machine.delete_groups(["g"]))
    assert deleted.value[0].error_code is ErrorCode.none
    (group,) = described(coordinator)
    assert group.error_code is ErrorCode.group_id_not_found


def test_a_commit_counts_for_the_tasks_that_the_member_kept(coordinator: Coordinator) -> None:
    beat(coordinator)
    beat(coordinator, "b")
    beat(coordinator, "a", 2, owned=owning(0, 1))
    beat(coordinator, "a", 2, owned=owning(0))
    kept = coordinator.commit({("t", 0): 5}, member_id="a", generation=2)
    assert kept == [("t", None, [(0, ErrorCode.none)])]
    gone = coordinator.refusal(
        lambda: coordinator.commit({("t", 1): 5}, member_id="a", generation=2)
    )
    assert gone is ErrorCode.stale_member_epoch


def test_a_join_says_what_it_must(coordinator: Coordinator) -> None:
    for more in ({"instance_id": "static"}, {"rack_id": ""}):
        refused = coordinator.refusal(partial(beat, coordinator, **more))
        assert refused is ErrorCode.invalid_request
    nothing = coordinator.refusal(lambda: beat(coordinator, of=topology(part("0"))))
    assert nothing is ErrorCode.streams_invalid_topology
    assert beat(coordinator, of=ONE_PART).error_code is ErrorCode.none
