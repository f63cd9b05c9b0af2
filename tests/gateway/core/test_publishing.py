"""The publisher with a faulty real broker, and with none."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.connection import Connection
from ottla.client.wire.cluster import Topic
from ottla.client.wire.errors import BrokerError, Unreachable
from ottla.client.wire.partitioner import partition_of
from ottla.gateway.core.errors import TooBusy
from ottla.gateway.core.partition_writer import Acks, Published
from ottla.gateway.core.publishing import Publisher
from ottla.gateway.core.record_json import NewRecord
from ottla.gateway.settings import GatewaySettings
from ottla.protocol.errors import ErrorCode
from ottla.testing import EmbeddedBroker

NOBODY = "127.0.0.1:1"
V = NewRecord(b"v")

Trial = Callable[[Publisher], Awaitable[None]]


class _NobodyAnswers(Cluster):
    """Knows a topic, and reaches no leader."""

    async def topic_to_write(self, name: str) -> Topic:
        return Topic(None, {0: 1}, False, {0: (1,)})


def run(trial: Trial, cluster: Cluster, settings: GatewaySettings) -> None:
    async def main() -> None:
        publisher = Publisher(settings, cluster)
        await trial(publisher)
        await publisher.close()

    asyncio.run(main())


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def over(broker: EmbeddedBroker) -> Callable[[Trial], None]:
    """Runs a trial with a publisher for the broker."""
    servers = broker.bootstrap_servers
    return lambda trial: run(trial, Cluster(servers), GatewaySettings(servers))


def values(broker: EmbeddedBroker, topic: str, count: int) -> list[bytes | None]:
    """All records of the topic, of which there must be this many."""
    broker.wait_for(topic, count)
    found = [record.value for record in broker.records(topic)]
    assert len(found) == count
    return found


def test_a_full_queue_is_told_at_once_and_does_not_grow() -> None:
    async def trial(publisher: Publisher) -> None:
        waiting = [asyncio.ensure_future(publisher.publish("t", V)) for _ in range(10)]
        await asyncio.sleep(0)
        with pytest.raises(TooBusy):
            await publisher.publish("t", V)
        outcomes = await publisher.publish_all("t", [V] * 3)
        assert [type(outcome) for outcome in outcomes] == [TooBusy] * 3
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(result) for result in results} == {Unreachable}
        (late,) = await asyncio.gather(
            await publisher.publish_patiently("t", V), return_exceptions=True
        )
        assert isinstance(late, Unreachable)

    settings = GatewaySettings(NOBODY, queue_records_max=10, publish_timeout_ms=200)
    run(trial, _NobodyAnswers(NOBODY, retry_timeout_ms=200), settings)


class _AnswersNonsense(_NobodyAnswers):
    async def any_broker(self) -> Connection:
        raise ValueError("an answer that does not fit")


def test_an_answer_that_makes_no_sense_leaves_nobody_waiting() -> None:
    async def trial(publisher: Publisher) -> None:
        for _ in range(2):  # The writer continues.
            with pytest.raises(Unreachable, match="does not fit"):
                await publisher.publish("t", V)

    run(trial, _AnswersNonsense(NOBODY), GatewaySettings(NOBODY))


def test_callers_of_one_moment_share_batches_and_keep_their_order(
    broker: EmbeddedBroker, over: Callable[[Trial], None]
) -> None:
    topic = broker.topic("shared")
    records = [NewRecord(b"%d" % number) for number in range(200)]

    async def trial(publisher: Publisher) -> None:
        reports = [await publisher.publish_patiently(topic, record) for record in records]
        found = await asyncio.gather(*reports)
        assert [report.offset for report in found] == list(range(200))

    over(trial)
    assert values(broker, topic, 200) == [record.value for record in records]


def test_keys_and_partitions_decide_where_records_go(
    broker: EmbeddedBroker, over: Callable[[Trial], None]
) -> None:
    topic = broker.topic("spread", partitions=5)
    keyed = [NewRecord(b"v", b"key-%d" % number) for number in range(20)]
    records = [*keyed, NewRecord(b"v", b"k", 3), NewRecord(b"v", None, 4)]

    async def trial(publisher: Publisher) -> None:
        found = await publisher.publish_all(topic, records)
        wanted = [partition_of(record.key or b"", 5) for record in keyed] + [3, 4]
        assert [getattr(outcome, "partition", outcome) for outcome in found] == wanted

    over(trial)


@pytest.mark.parametrize("lost", [1, 3])
def test_a_batch_whose_answer_was_lost_is_written_once(
    broker: EmbeddedBroker, over: Callable[[Trial], None], lost: int
) -> None:
    topic = broker.topic(f"lost-answer-{lost}")

    async def trial(publisher: Publisher) -> None:
        await publisher.publish(topic, NewRecord(b"first"))
        broker.faults.drop_next("Produce", lost)
        found = await publisher.publish_all(topic, [NewRecord(b"a"), NewRecord(b"b")])
        assert [getattr(outcome, "offset", outcome) for outcome in found] == [1, 2]
        await publisher.publish(topic, NewRecord(b"last"))

    over(trial)
    assert values(broker, topic, 4) == [b"first", b"a", b"b", b"last"]


def test_a_refusal_that_passes_is_waited_for(
    broker: EmbeddedBroker, over: Callable[[Trial], None]
) -> None:
    topic = broker.topic("refused")

    async def trial(publisher: Publisher) -> None:
        broker.faults.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", 2)
        assert (await publisher.publish(topic, V)).offset == 0

    over(trial)


def test_a_batch_that_is_too_large_for_its_topic_is_split(
    broker: EmbeddedBroker, over: Callable[[Trial], None]
) -> None:
    topic = broker.topic("small", config={"max.message.bytes": "1000"})
    records = [NewRecord(b"%0300d" % number) for number in range(9)]

    async def trial(publisher: Publisher) -> None:
        found = await publisher.publish_all(topic, [*records, NewRecord(b"x" * 2000)])
        assert [getattr(outcome, "offset", None) for outcome in found] == [*range(9), None]
        refused = found[-1]
        assert isinstance(refused, BrokerError)
        assert refused.code is ErrorCode.message_too_large
        assert (await publisher.publish(topic, V)).offset == 9

    over(trial)
    assert values(broker, topic, 10) == [record.value for record in (*records, V)]


def test_a_callers_bad_record_does_not_fail_anothers(
    broker: EmbeddedBroker, over: Callable[[Trial], None]
) -> None:
    topic = broker.topic("compacted", config={"cleanup.policy": "compact"})

    async def trial(publisher: Publisher) -> None:
        keyless, keyed = await asyncio.gather(
            publisher.publish(topic, NewRecord(b"v", None, 0)),
            publisher.publish(topic, NewRecord(b"v", b"k")),
            return_exceptions=True,
        )
        assert isinstance(keyless, BrokerError)
        assert keyless.code is ErrorCode.invalid_record
        assert isinstance(keyed, Published)

    over(trial)


def test_more_than_a_batch_takes_is_written_in_several(
    broker: EmbeddedBroker, over: Callable[[Trial], None]
) -> None:
    topic = broker.topic("large")
    records = [NewRecord(b"%0100000d" % number) for number in range(25)]

    async def trial(publisher: Publisher) -> None:
        found = await publisher.publish_all(topic, records)
        assert [getattr(outcome, "offset", outcome) for outcome in found] == list(range(25))

    over(trial)


@pytest.mark.parametrize(("acks", "offset"), [(Acks.LEADER, 0), (Acks.NONE, None)])
def test_fewer_acknowledgements_tell_less(
    broker: EmbeddedBroker, over: Callable[[Trial], None], acks: Acks, offset: int | None
) -> None:
    topic = broker.topic(f"acks-{acks}")

    async def trial(publisher: Publisher) -> None:
        assert (await publisher.publish(topic, V, acks)).offset == offset
        broker.wait_for(topic, 1)  # Before the connection is closed.

    over(trial)


def test_a_caller_who_leaves_takes_nothing_back(
    broker: EmbeddedBroker, over: Callable[[Trial], None]
) -> None:
    topic = broker.topic("left")

    async def trial(publisher: Publisher) -> None:
        await publisher.topic(topic)  # Cached from now on, so that nothing waits for it.
        leaving = asyncio.ensure_future(publisher.publish_all(topic, [V] * 3))
        alone = asyncio.ensure_future(publisher.publish(topic, V))
        await asyncio.sleep(0)
        leaving.cancel()
        alone.cancel()
        assert (await publisher.publish(topic, NewRecord(b"last"))).offset == 4

    over(trial)
