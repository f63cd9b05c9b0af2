"""Exactly once: tasks prepare, one decision counts, and what it names is committed.

A task writes in a transaction of its own, which it leaves open, and tells the driver how to end
it. The driver then

1. claims the sink (see `decisions`)
2. decides: these transactions are the batch
3. commits them
4. aborts every other open transaction of this batch and of those before it

Step 2 is the point of no return. Before it nothing counts: Spark runs the batch again. After it
the batch is done, though perhaps not finished; whoever commits the same batch again finishes it
and drops what was written anew.

Step 4 is safe for a driver that has been replaced and does not know: what is not in the decision
about a batch can never get into one, for that batch or one before it. It leaves later batches
alone, which may be somebody else's.

A task that comes too late looks at the last decision after it has prepared. Either its transaction
was open before the decision, then step 4 has found it; or the task sees that the batch is decided
without it, and aborts.
"""

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.security import PLAINTEXT, Security
from ottla.client.wire.transactions import (
    abort_by_ids,
    commit_transactions,
    list_open_ids,
)
from pyspark_ottla.sink.decisions import Decision, Decisions
from pyspark_ottla.sink.identity import BatchName, batch_of, pattern_of


class WrongQuery(Exception):
    """The sink's decisions belong to another query, or to a later batch of this one."""


def is_decided(last: Decision | None, batch: BatchName, query_id: str) -> bool:
    """Whether the batch is done already. WrongQuery if it is not the batch that comes next."""
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


def commit_batch(cluster: Cluster, decision: Decision) -> Decision | None:
    """Make it the decision about its batch, unless there is one, and finish that.

    Returns the last decision before.
    """
    claim = Decisions(cluster, decision.batch.sink_id).claim()
    if is_decided(claim.last, decision.batch, decision.query_id):
        assert claim.last is not None
        decision = claim.last
    else:
        claim.decide(decision)
    finish(cluster, decision)
    return claim.last


def finish(cluster: Cluster, decision: Decision) -> None:
    """May be repeated, by anyone, at any time."""
    commit_transactions(cluster, decision.transactions)
    _abort_strays(cluster, decision)


def _abort_strays(cluster: Cluster, decision: Decision) -> None:
    sink_id, batch_id = decision.batch.sink_id, decision.batch.batch_id
    members = {transaction.transactional_id for transaction in decision.transactions}
    abort_by_ids(
        cluster,
        [
            transactional_id
            for transactional_id in list_open_ids(cluster, pattern_of(sink_id))
            if batch_of(transactional_id) <= batch_id and transactional_id not in members
        ],
    )


def abort_batch(cluster: Cluster, batch: BatchName) -> None:
    """Drop what this run has prepared for the batch, unless it was decided.

    The claim settles a decision that this run has begun without learning how it ended.
    """
    last = Decisions(cluster, batch.sink_id).claim().last
    if last is None or last.batch.batch_id < batch.batch_id:
        abort_by_ids(cluster, list_open_ids(cluster, batch.pattern))


def abort_prepared(
    bootstrap_servers: str, sink_id: str, security: Security = PLAINTEXT
) -> list[str]:
    """For a sink that will not run again: abort all that it has left open, and say what it was.

    A batch that was decided is finished first. No query with this sink id may run meanwhile.
    """
    with Cluster(bootstrap_servers, security=security) as cluster:
        last = Decisions(cluster, sink_id).claim().last
        if last is not None:
            finish(cluster, last)
        left = list_open_ids(cluster, pattern_of(sink_id))
        abort_by_ids(cluster, left)
        return left
