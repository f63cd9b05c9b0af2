"""Exactly once: tasks prepare, one decision counts, and the transactions it names are committed.

A task writes in a transaction of its own, leaves it open, and tells the driver how to end it. The
driver then

1. claims the sink (see `decisions`), unless it still has the claim from the previous batch
2. decides: these transactions are the batch
3. commits them
4. aborts every other open transaction of this batch and of earlier ones

Step 2 is the point of no return. Before it nothing counts: Spark runs the batch again. After it the
batch is decided, though perhaps not finished; whoever commits the same batch again finishes it and
drops what was written anew.

Step 4 is safe even for a driver that has been replaced without knowing: a transaction missing from
the decision on a batch can never enter that batch or an earlier one. It leaves later batches alone,
which may belong to someone else.

A task that comes too late reads the last decision after opening its transaction. Either it was open
before the decision, and step 4 has found it; or the task sees that the batch is decided without it,
and aborts.
"""

from collections.abc import Iterable
from dataclasses import replace

from ottla.client.wire.cluster import Cluster, CoordinatorType
from ottla.client.wire.security import PLAINTEXT, Security
from ottla.client.wire.transactions import (
    OpenIdsQuestion,
    abort_by_ids,
    commit_transactions,
    list_open_ids,
)
from pyspark_ottla.sink.decisions import Claim, Decision, Decisions, SinkFenced
from pyspark_ottla.sink.identity import BatchName, batch_of, deciding_id, pattern_of


class WrongQuery(Exception):
    """The sink's decisions belong to another query, or to a later batch of this one."""


def is_decided(last: Decision | None, batch: BatchName, query_id: str) -> bool:
    """Whether the batch is already decided. Raises WrongQuery if it is not the next one."""
    if last is None:
        return False
    if last.query_id != query_id:
        raise WrongQuery(
            f"sinkId {batch.sink_id!r} belongs to another query"
            f" ({last.query_id or 'a batch write'}, batch {last.batch.batch_id}); a query with a"
            " new checkpoint needs a new sinkId"
        )
    if last.batch.batch_id > batch.batch_id:
        raise WrongQuery(
            f"sinkId {batch.sink_id!r} has committed batch {last.batch.batch_id} and does not take"
            f" batch {batch.batch_id}: the checkpoint is older than what was written, or another"
            " run of the query is active"
        )
    return last.batch.batch_id == batch.batch_id


class KeptClaims:
    """Claims kept from earlier batches in this process, one per sink.

    A driver has several Python processes and commits a batch in any idle one. So a claim may have
    been fenced by a sibling, and then the last decision is from the same run.
    """

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], Claim] = {}  # By bootstrap servers and sink.

    def take(self, cluster: Cluster, batch: BatchName) -> Claim | None:
        """Removes the claim: only making a decision returns one."""
        claim = self._claims.pop((cluster.bootstrap_servers, batch.sink_id), None)
        if claim is None or claim.last is None or claim.last.batch.run_id != batch.run_id:
            return None
        return replace(claim, cluster=cluster)

    def keep(self, claim: Claim) -> None:
        assert claim.last is not None, "it was used"
        sink_id = claim.last.batch.sink_id
        self._claims[claim.cluster.bootstrap_servers, sink_id] = claim


def commit_batch(
    cluster: Cluster, decision: Decision, kept: KeptClaims | None = None
) -> Decision | None:
    """Decide the batch, unless it is already decided, and finish it.

    Returns the previous decision. Raises SinkFenced if another run has taken the sink.
    """
    kept = KeptClaims() if kept is None else kept
    decisions = Decisions(cluster, decision.batch.sink_id)
    _learn_coordinators(cluster, decision)
    claim = kept.take(cluster, decision.batch)
    if claim is not None:
        try:
            return _commit_with(claim, decision, kept)
        except SinkFenced:
            # Read without a claim, which would fence the other run in turn.
            last = decisions.last()
            if last is None or last.batch.run_id != decision.batch.run_id:
                raise
    return _commit_with(decisions.claim(), decision, kept)


def _learn_coordinators(cluster: Cluster, decision: Decision) -> None:
    """With one request instead of one per step."""
    names = [transaction.transactional_id for transaction in decision.transactions]
    names.append(deciding_id(decision.batch.sink_id))
    cluster.retry(lambda: cluster.learn_coordinators(CoordinatorType.TRANSACTION, names))


def _commit_with(claim: Claim, decision: Decision, kept: KeptClaims) -> Decision | None:
    if is_decided(claim.last, decision.batch, decision.query_id):
        assert claim.last is not None
        decision = claim.last
    else:
        kept.keep(claim.decide(decision))
    finish(claim.cluster, decision)
    return claim.last


def finish(cluster: Cluster, decision: Decision) -> None:
    """Idempotent: anyone may repeat it at any time."""
    with OpenIdsQuestion(cluster, pattern_of(decision.batch.sink_id)) as question:
        commit_transactions(cluster, decision.transactions)
        _abort_strays(cluster, decision, question.answer())


def _abort_strays(cluster: Cluster, decision: Decision, open_ids: Iterable[str]) -> None:
    """`open_ids` were listed after the decision; they may include transactions that it names."""
    members = {transaction.transactional_id for transaction in decision.transactions}
    abort_by_ids(
        cluster,
        [
            transactional_id
            for transactional_id in open_ids
            if batch_of(transactional_id) <= decision.batch.batch_id
            and transactional_id not in members
        ],
    )


def abort_batch(cluster: Cluster, batch: BatchName) -> None:
    """Drop what this run has prepared for the batch, unless it was decided.

    The claim settles a decision of this run whose outcome was unknown.
    """
    last = Decisions(cluster, batch.sink_id).claim().last
    if last is None or last.batch.batch_id < batch.batch_id:
        abort_by_ids(cluster, list_open_ids(cluster, batch.pattern))


def abort_prepared(
    bootstrap_servers: str, sink_id: str, security: Security = PLAINTEXT
) -> list[str]:
    """For a sink that will not run again: abort everything it left open, and return what that was.

    Finishes a decided batch first. No query with this sink id may run meanwhile.
    """
    with Cluster(bootstrap_servers, security=security) as cluster:
        last = Decisions(cluster, sink_id).claim().last
        if last is not None:
            finish(cluster, last)
        left = list_open_ids(cluster, pattern_of(sink_id))
        abort_by_ids(cluster, left)
        return left
