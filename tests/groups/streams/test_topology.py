"""The number of tasks of a topology, and its missing topics."""

import pytest
from kio.schema.streams_group_heartbeat.v0.request import CopartitionGroup
from kio.static.primitive import i16
from tests.groups.kit import Catalog
from tests.groups.streams.kit import COUNTS, info, part, topology

from ottla.groups.streams.topology import (
    ConfiguredTopology,
    InternalTopic,
    Problem,
    Status,
    configure,
    topology_of,
)
from ottla.protocol.errors import ApiError, ErrorCode


def test_a_task_for_each_partition_of_the_largest_source() -> None:
    configured = configure(topology_of(topology(part("0", "t", "u"))), Catalog(t=4, u=2))
    assert configured == ConfiguredTopology(task_counts={"0": 4})
    assert configured.is_ready


def test_internal_topics_get_the_partitions_of_what_is_written_to_them() -> None:
    configured = configure(topology_of(COUNTS), Catalog(t=3))
    assert configured.task_counts == {"0": 3, "1": 3}
    assert configured.missing == (
        InternalTopic("again", 3, 0, ()),
        InternalTopic("state", 3, 0, ()),
    )
    assert configured.problem == Problem(
        Status.MISSING_INTERNAL_TOPICS, "Internal topics are missing: again, state"
    )


def test_it_is_ready_when_they_are_there() -> None:
    configured = configure(topology_of(COUNTS), Catalog(t=3, again=3, state=3))
    assert configured == ConfiguredTopology(task_counts={"0": 3, "1": 3})


def test_a_chain_of_repartition_topics_is_decided_from_its_beginning() -> None:
    chain = topology(
        part("2", repartitions=[info("second")]),
        part("1", repartitions=[info("first", 5)], sinks=["second"]),
        part("0", "t", sinks=["first"]),
    )
    configured = configure(topology_of(chain), Catalog(t=2))
    assert configured.task_counts == {"0": 2, "1": 5, "2": 5}


def test_missing_sources() -> None:
    configured = configure(topology_of(topology(part("0", "t", "x", "y"))), Catalog(t=4))
    assert configured.problem == Problem(
        Status.MISSING_SOURCE_TOPICS, "Source topics x, y are missing."
    )


def test_an_internal_topic_with_other_partitions_does_not_fit() -> None:
    configured = configure(topology_of(COUNTS), Catalog(t=3, again=3, state=2))
    assert configured.problem is not None
    assert configured.problem.status is Status.INCORRECTLY_PARTITIONED_TOPICS


def test_copartitioned_sources_have_equally_many_partitions() -> None:
    group = CopartitionGroup(source_topics=(i16(0), i16(1)))
    joined = topology_of(topology(part("0", "t", "u", together=[group])))
    assert configure(joined, Catalog(t=2, u=2)).is_ready
    problem = configure(joined, Catalog(t=4, u=2)).problem
    assert problem is not None
    assert problem.status is Status.INCORRECTLY_PARTITIONED_TOPICS


def test_a_repartition_topic_follows_its_copartition_group() -> None:
    group = CopartitionGroup(source_topics=(i16(0),), repartition_source_topics=(i16(0),))
    joined = topology(
        part("0", "small", sinks=["again"]),
        part("1", "large", repartitions=[info("again")], together=[group]),
    )
    configured = configure(topology_of(joined), Catalog(small=1, large=6))
    assert configured.missing == (InternalTopic("again", 6, 0, ()),)


def test_a_source_can_be_the_changelog() -> None:
    reused = topology_of(topology(part("0", "t", changelogs=["t"])))
    assert configure(reused, Catalog(t=4)).is_ready


def test_a_subtopology_may_read_what_it_writes() -> None:
    loop = topology(part("0", "t", repartitions=[info("again")], sinks=["again"]))
    configured = configure(topology_of(loop), Catalog(t=4))
    assert configured.task_counts == {"0": 4}
    assert configured.missing == (InternalTopic("again", 4, 0, ()),)


def test_the_first_writer_with_a_known_source_decides() -> None:
    circle = topology(
        part("0", repartitions=[info("back")], sinks=["forth"]),
        part("1", "t", repartitions=[info("forth")], sinks=["back"]),
    )
    assert configure(topology_of(circle), Catalog(t=3)).task_counts == {"0": 3, "1": 3}


def test_a_loop_without_another_source_has_no_partitions() -> None:
    loop = topology_of(topology(part("0", repartitions=[info("again")], sinks=["again"])))
    with pytest.raises(ApiError) as refused:
        configure(loop, Catalog())
    assert refused.value.code is ErrorCode.streams_invalid_topology


def test_a_repartition_topic_that_nothing_is_written_to() -> None:
    lonely = topology_of(topology(part("0", repartitions=[info("again")])))
    with pytest.raises(ApiError) as refused:
        configure(lonely, Catalog())
    assert refused.value.code is ErrorCode.streams_invalid_topology


def test_the_order_in_which_topics_are_named_does_not_matter() -> None:
    ordered = topology(
        part("0", "a", "b", together=[CopartitionGroup(source_topics=(i16(0),))]), part("1", "c")
    )
    other = topology(
        part("1", "c"), part("0", "b", "a", together=[CopartitionGroup(source_topics=(i16(1),))])
    )
    assert topology_of(ordered) == topology_of(other)
