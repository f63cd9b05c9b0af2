"""Each load runs against a broker and reports what it did; nothing is timed."""

import pytest
from benchmarks.bench import Bench, LoadFailed, run_load, run_measured_load
from benchmarks.peers.peer import Flush, Server
from benchmarks.scenarios.gateway_queues import running_gateway

pytestmark = pytest.mark.process


def test_raw_requests_are_answered_and_can_be_fetched(bench: Bench, server: Server) -> None:
    with bench.topic(server, Flush.OS) as topic:
        produced = run_measured_load(
            server, "raw_produce", topic=topic, records=4, count=200, warm_seconds=0, seconds=120
        )
        fetched = run_load(
            "raw_fetch", address=server.address, topic=topic, end_offset=800, seconds=0.1
        )
    assert produced["requests"] >= 200
    assert produced["processor_seconds_per_gigabyte"] >= 0
    assert fetched["records"] >= 800


def test_messages_of_a_client_arrive_and_are_consumed(bench: Bench, server: Server) -> None:
    with bench.topic(server, Flush.OS, partitions=2) as topic:
        common = {"address": server.address, "topic": topic, "partitions": 2}
        produced = run_load("confluent_produce", value_size=100, count=2_000, **common)
        consumed = run_load("confluent_consume", count=int(produced["messages"]), **common)
    assert consumed["messages"] == produced["messages"] >= 2_000


@pytest.mark.parametrize("client", ["confluent", "raw"])
def test_latencies_are_in_order(bench: Bench, server: Server, client: str) -> None:
    with bench.topic(server, Flush.OS) as topic:
        outcome = run_load(
            "latency",
            address=server.address,
            topic=topic,
            client=client,
            rate=500,
            warm_seconds=0.1,
            seconds=0.4,
        )
    assert outcome["messages"] == 200
    assert 0 < outcome["p50_ms"] <= outcome["p99_ms"] <= outcome["p999_ms"] <= outcome["max_ms"]


def test_sqs_messages_are_sent_received_and_deleted(bench: Bench, server: Server) -> None:
    with running_gateway(bench, server) as (url, _):
        outcome = run_load("sqs_cycle", url=url, seconds=3, connections=2)
    assert outcome["messages"] > 0


def test_a_failing_call_fails_the_sqs_load() -> None:
    with pytest.raises(LoadFailed, match="sqs_cycle failed"):
        run_load("sqs_cycle", url="http://127.0.0.1:1", seconds=1)


def test_a_refused_request_fails_the_load(server: Server) -> None:
    with pytest.raises(LoadFailed, match="refused with error 3"):
        run_load("raw_produce", address=server.address, topic="missing", count=1)
