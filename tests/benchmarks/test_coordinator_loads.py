"""Each load of the coordinators runs against a broker and reports what it did; nothing is timed."""

from itertools import islice

import pytest
from benchmarks.bench import Bench, LoadFailed, run_load
from benchmarks.loads.fill_offsets import groups_of_one_coordinator
from benchmarks.peers.peer import Flush, Server
from benchmarks.scenarios import loading

from ottla.machine.partitioning import partition_for

pytestmark = pytest.mark.process


def test_raw_commits_are_answered(bench: Bench, server: Server) -> None:
    with bench.topic(server, Flush.OS, partitions=5) as topic:
        outcome = run_load(
            "raw_commit",
            address=server.address,
            topic=topic,
            partitions=5,
            in_flight=10,
            warm_seconds=0,
            seconds=120,  # More than enough to reach the count.
            count=200,
        )
    assert outcome["commits_answered"] >= outcome["commits"] >= 200


def test_a_commit_of_an_unknown_partition_fails_the_load(bench: Bench, server: Server) -> None:
    with bench.topic(server, Flush.OS) as topic, pytest.raises(LoadFailed, match="error"):
        run_load("raw_commit", address=server.address, topic=topic, partitions=2, count=200)


def test_synchronous_commits_of_a_client_are_answered(bench: Bench, server: Server) -> None:
    with bench.topic(server, Flush.OS) as topic:
        outcome = run_load(
            "confluent_commit", address=server.address, topic=topic, warm_seconds=0, seconds=0.1
        )
    assert outcome["commits"] >= 1


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumers_share_the_partitions(bench: Bench, server: Server, protocol: str) -> None:
    with bench.topic(server, Flush.OS, partitions=4) as topic:
        outcome = run_load(
            "rebalance",
            address=server.address,
            topic=topic,
            partitions=4,
            members=2,
            protocol=protocol,
            heartbeat_ms=100 if protocol == "classic" else 500,
            times=1,
            quiet_seconds=0.1,
        )
    assert (outcome["members"], outcome["partitions"]) == (2, 4)
    assert {"join_seconds", "one_more_seconds", "one_less_seconds"} <= outcome.keys()


@pytest.mark.parametrize("load", ["many_members", "many_classic_members"])
def test_raw_members_have_a_partition_each(bench: Bench, server: Server, load: str) -> None:
    with bench.topic(server, Flush.OS, partitions=8) as topic:
        common = {"address": server.address, "topic": topic}
        outcome = run_load(load, partitions=8, members=8, **common)
    assert outcome["members"] == 8


def test_transactions_are_committed(bench: Bench, server: Server) -> None:
    with bench.topic(server, Flush.OS) as topic:
        common = {"address": server.address, "topic": topic}
        outcome = run_load("transactions", records=3, warm_seconds=0, seconds=0.1, **common)
        consumed = run_load("confluent_consume", count=3, **common)
    assert outcome["transactions"] >= 1
    assert consumed["messages"] >= 3


def test_a_share_group_delivers_every_record(bench: Bench, server: Server) -> None:
    with bench.topic(server, Flush.OS) as topic:
        common = {"address": server.address, "topic": topic}
        produced = run_load("confluent_produce", value_size=100, count=1_000, **common)
        outcome = run_load("share_consume", count=int(produced["messages"]), **common)
    assert outcome["deliveries"] == produced["messages"] >= 1_000


def test_groups_of_one_coordinator_have_one_partition() -> None:
    names = islice(groups_of_one_coordinator(), 20)
    assert len({partition_for(name, 50) for name in names}) == 1


def test_a_coordinator_that_was_stopped_knows_its_commits(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "COMMITS", 50 * 2_000)
    loading.loading(bench)
    rows = bench.results.rows("loading a coordinator")
    assert [row.label.split()[0] for row in rows] == ["2,000"]
