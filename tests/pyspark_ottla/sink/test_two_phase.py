"""The protocol without Spark: every point at which a process can die or be late.

A driver dies by not taking its next step; a new run then does what Spark would: prepare the batch
again, and commit.
"""

import itertools
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from tests.pyspark_ottla.sink.written import portion, records, values

from ottla.client.wire import fetching
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.connection import Connection
from ottla.client.wire.errors import BrokerError, Unreachable
from ottla.client.wire.fetching import Fetched
from ottla.client.wire.producing import add_partitions
from ottla.client.wire.transactions import abort_by_ids, commit_transactions, list_open_ids
from ottla.protocol.errors import ErrorCode
from pyspark_ottla.cluster_pool import borrow
from pyspark_ottla.sink import decisions as decisions_module
from pyspark_ottla.sink import prepare as prepare_module
from pyspark_ottla.sink.columns import Portion
from pyspark_ottla.sink.decisions import (
    TOPIC,
    Decision,
    Decisions,
    Prepared,
    SinkFenced,
)
from pyspark_ottla.sink.identity import BatchName, pattern_of
from pyspark_ottla.sink.options import SinkOptions, parse_sink_options
from pyspark_ottla.sink.prepare import prepare
from pyspark_ottla.sink.two_phase import (
    KeptClaims,
    WrongQuery,
    abort_batch,
    abort_prepared,
    commit_batch,
    finish,
)

TASKS = 3
QUERY = "query"

call_all = decisions_module._call_all

_numbers = itertools.count()


class Run:
    """One run of a query: the steps of its tasks and its driver."""

    def __init__(self, options: SinkOptions, cluster: Cluster, query: str = QUERY) -> None:
        self.options = options
        self.cluster = cluster
        self.query = query
        self.id = f"run-{next(_numbers)}"
        self._attempts = itertools.count()

    def name(self, batch_id: int) -> BatchName:
        return BatchName(self.options.sink_id, batch_id, self.id)

    def prepare_task(self, batch_id: int, partition: int) -> Prepared | None:
        task = partition, next(self._attempts)
        rows = portion(f"{batch_id}-{partition}")
        return prepare(self.options, self.name(batch_id), self.query, task, iter([rows])).prepared

    def prepare(self, batch_id: int) -> Decision:
        prepared = [self.prepare_task(batch_id, partition) for partition in range(TASKS)]
        present = tuple(task for task in prepared if task is not None)
        return Decision(self.name(batch_id), self.query, present)

    def run(self, batch_id: int, kept: KeptClaims | None = None) -> None:
        commit_batch(self.cluster, self.prepare(batch_id), kept)


@pytest.fixture
def options(bootstrap: str, topic: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "sinkid": topic}
    return parse_sink_options(given, is_stream=True)


@pytest.fixture
def first(options: SinkOptions, cluster: Cluster) -> Run:
    return Run(options, cluster)


@pytest.fixture
def second(options: SinkOptions, cluster: Cluster) -> Run:
    return Run(options, cluster)


def expected(*batch_ids: int) -> list[str]:
    return sorted(f"{batch_id}-{task}" for batch_id in batch_ids for task in range(TASKS))


def assert_once(run: Run, *batch_ids: int) -> None:
    assert list_open_ids(run.cluster, pattern_of(run.options.sink_id)) == []
    assert run.options.topic is not None
    assert values(run.cluster, run.options.topic) == expected(*batch_ids)


def decide_only(run: Run, decision: Decision) -> None:
    Decisions(run.cluster, run.options.sink_id).claim().decide(decision)


def test_batches_one_after_the_other(first: Run) -> None:
    for batch_id in range(3):
        first.run(batch_id)
    assert_once(first, 0, 1, 2)


_kept = KeptClaims()  # Of a process.


def commit_in_another_process(options: SinkOptions, decision: Decision) -> None:
    with borrow(options.cluster) as cluster:
        commit_batch(cluster, decision, _kept)


def test_processes_of_one_driver_take_turns(first: Run) -> None:
    """Spark commits a batch in any of its driver's Python processes that is idle."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as one, ProcessPoolExecutor(1, spawn) as other:
        for batch_id, process in enumerate((one, other, one, one, other)):
            decision = first.prepare(batch_id)
            process.submit(commit_in_another_process, first.options, decision).result()
    assert_once(first, 0, 1, 2, 3, 4)


def test_a_task_that_ran_twice_counts_once(first: Run) -> None:
    first.prepare_task(0, 1)
    first.run(0)
    assert_once(first, 0)


def test_the_driver_dies_before_the_decision(first: Run, second: Run) -> None:
    first.prepare(0)
    second.run(0)
    assert_once(second, 0)


def test_the_driver_dies_after_its_claim(first: Run, second: Run) -> None:
    first.prepare(0)
    Decisions(first.cluster, first.options.sink_id).claim()
    second.run(0)
    assert_once(second, 0)


def test_the_driver_dies_in_the_middle_of_the_decision(first: Run, second: Run) -> None:
    first.prepare(0)
    claim = Decisions(first.cluster, first.options.sink_id).claim()
    add_partitions(first.cluster, claim.transactional_id, claim.producer, [claim.partition])
    second.run(0)
    assert_once(second, 0)


def test_the_driver_dies_after_the_decision(first: Run, second: Run) -> None:
    decide_only(first, first.prepare(0))
    again = second.prepare(0)
    assert again.prepared == ()  # A decided batch is not written again.
    commit_batch(second.cluster, again)
    assert_once(second, 0)


def test_the_driver_dies_in_the_middle_of_the_commits(first: Run, second: Run) -> None:
    decision = first.prepare(0)
    decide_only(first, decision)
    commit_transactions(first.cluster, decision.transactions[:1])
    second.run(0)
    assert_once(second, 0)


def test_the_driver_dies_before_spark_knows(first: Run, second: Run) -> None:
    first.run(0)
    second.run(0)
    second.run(1)
    assert_once(second, 0, 1)


def test_the_new_run_prepares_before_the_old_one_decides(first: Run, second: Run) -> None:
    old, new = first.prepare(0), second.prepare(0)
    decide_only(first, old)
    commit_batch(second.cluster, new)
    assert_once(second, 0)


def test_a_driver_that_was_replaced_cannot_decide(first: Run, second: Run) -> None:
    old = first.prepare(0)
    claim = Decisions(first.cluster, first.options.sink_id).claim()
    second.run(0)
    with pytest.raises(SinkFenced, match="another query writes with sinkId"):
        claim.decide(old)
    abort_batch(first.cluster, old.batch)
    assert_once(second, 0)


def test_a_driver_that_was_replaced_leaves_later_batches_alone(first: Run, second: Run) -> None:
    old = first.prepare(0)
    decide_only(first, old)
    second.run(0)
    later = second.prepare(1)
    finish(first.cluster, old)
    abort_batch(first.cluster, old.batch)
    commit_batch(second.cluster, later)
    assert_once(second, 0, 1)


def test_a_failed_batch_is_aborted(first: Run, second: Run) -> None:
    first.prepare(0)
    abort_batch(first.cluster, first.name(0))
    assert list_open_ids(first.cluster, pattern_of(first.options.sink_id)) == []
    second.run(0)
    assert_once(second, 0)


def test_an_abort_does_nothing_to_a_decided_batch(first: Run, second: Run) -> None:
    decide_only(first, first.prepare(0))
    abort_batch(first.cluster, first.name(0))
    second.run(0)
    assert_once(second, 0)


def test_a_task_that_comes_after_the_decision_aborts(
    first: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = prepare_module._write

    def write_and_decide(*arguments: object) -> bool:
        monkeypatch.setattr(prepare_module, "_write", write)
        first.run(0)
        return write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(prepare_module, "_write", write_and_decide)
    assert first.prepare_task(0, 1) is None
    assert_once(first, 0)


def test_a_task_that_fails_leaves_nothing_open(first: Run) -> None:
    rows = portion("a", partition=[9])
    with pytest.raises(ValueError, match="a row asks for 9"):
        prepare(first.options, first.name(0), QUERY, (0, 0), iter([rows]))
    assert list_open_ids(first.cluster, pattern_of(first.options.sink_id)) == []


def test_a_task_without_rows_opens_nothing(first: Run) -> None:
    outcome = prepare(first.options, first.name(0), QUERY, (0, 0), iter([]))
    assert outcome.prepared is None


def test_a_batch_before_the_last_is_refused(first: Run, second: Run) -> None:
    late = second.prepare(0)
    first.run(1)
    with pytest.raises(WrongQuery, match="has committed batch 1 and does not take batch 0"):
        commit_batch(second.cluster, late)
    with pytest.raises(WrongQuery, match="does not take batch 0"):
        second.prepare(0)
    assert_once(first, 1)


def test_another_query_may_not_have_the_same_name(
    first: Run, options: SinkOptions, cluster: Cluster
) -> None:
    first.run(4)
    other = Run(options, cluster, query="other")
    with pytest.raises(WrongQuery, match="a query with a new checkpoint needs a new sinkId"):
        other.prepare(4)
    with pytest.raises(WrongQuery, match="belongs to another query"):
        commit_batch(cluster, Decision(other.name(5), other.query, ()))


def test_a_decided_transaction_that_somebody_aborted_is_no_silent_loss(first: Run) -> None:
    decision = first.prepare(0)
    abort_by_ids(first.cluster, [decision.transactions[0].transactional_id])
    with pytest.raises(BrokerError, match=decision.transactions[0].transactional_id):
        commit_batch(first.cluster, decision)


def test_what_an_abandoned_sink_has_left_can_be_dropped(first: Run, bootstrap: str) -> None:
    decide_only(first, first.prepare(0))
    left = [transaction.transactional_id for transaction in first.prepare(1).transactions]
    assert sorted(abort_prepared(bootstrap, first.options.sink_id)) == sorted(left)
    assert abort_prepared(bootstrap, first.options.sink_id) == []
    assert_once(first, 0)


def test_a_claim_is_kept_for_the_next_batch(first: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptClaims()
    first.run(0, kept)
    monkeypatch.delattr(Decisions, "claim")
    for batch_id in range(1, 4):
        first.run(batch_id, kept)
    assert_once(first, 0, 1, 2, 3)


def test_claims_of_one_run_that_fence_each_other(first: Run) -> None:
    processes = [KeptClaims() for _ in range(3)]
    for batch_id, number in enumerate([0, 1, 0, 0, 2, 1, 1, 0]):
        first.run(batch_id, processes[number])
    assert_once(first, *range(8))


def test_an_abort_in_another_process_does_not_end_the_query(first: Run) -> None:
    kept = KeptClaims()
    first.run(0, kept)
    first.prepare(1)
    abort_batch(first.cluster, first.name(1))
    first.run(1, kept)
    assert_once(first, 0, 1)


def cut_before(connection: Connection, requests: Sequence[Any]) -> list[Any]:
    raise Unreachable("cut")


def cut_after(connection: Connection, requests: Sequence[Any]) -> list[Any]:
    call_all(connection, requests)
    raise Unreachable("cut")


def cut_in_between(connection: Connection, requests: Sequence[Any]) -> list[Any]:
    call_all(connection, requests[:2])
    raise Unreachable("cut")


def refuse_records(connection: Connection, requests: Sequence[Any]) -> list[Any]:
    added, _, ended = requests
    call_all(connection, [added, ended])
    raise BrokerError(ErrorCode.not_leader_or_follower, "a write")


@pytest.mark.parametrize("fault", [cut_before, cut_in_between, cut_after, refuse_records])
def test_a_decision_whose_answers_are_lost_is_made_once(
    first: Run, second: Run, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., list[Any]]
) -> None:
    kept = KeptClaims()
    first.run(0, kept)
    monkeypatch.setattr(decisions_module, "_call_all", fault)
    first.run(1, kept)
    monkeypatch.undo()
    first.run(2, kept)
    second.run(2)
    assert_once(second, 0, 1, 2)
    made = [record.key for record in records(first.cluster, TOPIC)[claimed_partition(first)]]
    assert made.count(first.options.sink_id.encode()) == 3


def claimed_partition(run: Run) -> int:
    return Decisions(run.cluster, run.options.sink_id).claim().partition.partition


def test_a_task_after_one_with_rows_may_have_none(first: Run) -> None:
    first.run(0)
    outcome = prepare(first.options, first.name(1), QUERY, (0, 9), iter([]))
    assert outcome.prepared is None
    assert list_open_ids(first.cluster, pattern_of(first.options.sink_id)) == []
    first.run(1)
    assert_once(first, 0, 1)


def rows_when_open(run: Run, *rows: Portion) -> Iterator[Portion]:
    """Dies, or continues, once a transaction of the sink is open."""
    while not list_open_ids(run.cluster, pattern_of(run.options.sink_id)):
        pass
    yield from rows


def test_a_transaction_has_its_partitions_before_its_rows_come(first: Run) -> None:
    first.run(0)
    rows = rows_when_open(first, portion("1-0"), portion("1-1"), portion("1-2"))
    prepared = prepare(first.options, first.name(1), QUERY, (0, 9), rows).prepared
    assert prepared is not None
    commit_batch(first.cluster, Decision(first.name(1), QUERY, (prepared,)))
    assert_once(first, 0, 1)


def test_an_open_transaction_without_rows_is_aborted(first: Run) -> None:
    first.run(0)
    outcome = prepare(first.options, first.name(1), QUERY, (0, 9), rows_when_open(first))
    assert outcome.prepared is None
    assert list_open_ids(first.cluster, pattern_of(first.options.sink_id)) == []


def test_rows_that_cannot_be_read_leave_nothing_open(first: Run) -> None:
    def broken() -> Iterator[Portion]:
        yield from rows_when_open(first)
        raise ValueError("no rows")

    first.run(0)
    with pytest.raises(ValueError, match="no rows"):
        prepare(first.options, first.name(1), QUERY, (0, 9), broken())
    assert list_open_ids(first.cluster, pattern_of(first.options.sink_id)) == []


def test_a_transaction_that_cannot_be_opened_fails_the_task(
    first: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.run(0)

    def refuse(*_: object, **__: object) -> None:
        raise BrokerError(ErrorCode.transactional_id_authorization_failed, "a producer id")

    monkeypatch.setattr(prepare_module, "init_transactions", refuse)
    with pytest.raises(BrokerError, match="a producer id"):
        first.prepare_task(1, 0)


def test_a_kept_claim_ends_with_another_run(first: Run, second: Run) -> None:
    old, new = KeptClaims(), KeptClaims()
    first.run(0, old)
    late = first.prepare(1)
    second.run(1, new)
    with pytest.raises(SinkFenced, match="another query writes with sinkId"):
        commit_batch(first.cluster, late, old)
    abort_batch(first.cluster, late.batch)
    second.run(2, new)
    assert_once(second, 0, 1, 2)


def test_a_decision_that_a_new_leader_cannot_show_yet_is_awaited(
    first: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does its high watermark tell that there is one."""
    first.run(0)
    decided = first.prepare(1)
    decide_only(first, decided)
    fetched, is_new = fetching.fetched, [True]

    def answer(response: Any, topic_partition: TopicPartition, offset: int) -> Fetched:
        if not is_new:
            return fetched(response, topic_partition, offset)
        is_new.clear()
        return Fetched(memoryview(b""), (), offset, offset, 0)

    monkeypatch.setattr(fetching, "fetched", answer)

    assert Decisions(first.cluster, first.options.sink_id).last() == decided

    finish(first.cluster, decided)
    assert_once(first, 0, 1)


def test_a_batch_that_is_committed_again_is_finished(first: Run) -> None:
    kept = KeptClaims()
    decision = first.prepare(0)
    commit_batch(first.cluster, decision, kept)
    commit_batch(first.cluster, decision, kept)
    first.run(1, kept)
    assert_once(first, 0, 1)
