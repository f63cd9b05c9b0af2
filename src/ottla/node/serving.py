"""What the handlers of requests work with, put together from the parts of a node."""

from ottla.controller.config import BROKER_SESSION_TIMEOUT_MS
from ottla.coordination.pending_writes import PendingWrites
from ottla.handlers.api import claimed_versions
from ottla.handlers.broker import Broker
from ottla.handlers.table import API_TABLE
from ottla.node.coordination import Coordination
from ottla.node.parts import Parts
from ottla.node.quorum import MetadataQuorum
from ottla.node.registration import Registration
from ottla.replication.config import FETCH_MAX_BYTES, RACK_AWARE_SELECTOR, REPLICA_SELECTOR_CLASS
from ottla.replication.follower_sessions import FollowerSessions
from ottla.runtime.producer_ids import ProducerIds


def make_broker(
    parts: Parts,
    quorum: MetadataQuorum,
    registration: Registration,
    coordination: Coordination,
) -> Broker:
    values, replicas, transactions = parts.values, parts.replicas, coordination.transactions
    clock, executor = parts.process.clock, parts.process.executor
    session_s = values[BROKER_SESSION_TIMEOUT_MS] / 1000
    return Broker(
        node_id=parts.node_id,
        cluster_id=parts.logs.log_dirs.cluster_id,
        image=parts.feed.image,
        controller=quorum.controller,
        quorum=quorum.requests,
        metadata_end_offset=lambda: quorum.applier.applied_offset,
        connections=quorum.connections,
        fenced_brokers=quorum.fenced,
        is_in_touch=lambda: registration.silence_s < session_s,
        configs=parts.configs,
        producer_ids=ProducerIds(registration.allocate_producer_ids),
        replicas=replicas,
        follower_sessions=FollowerSessions(replicas, replicas.fetch_sessions.new_id, parts.process),
        groups=coordination.groups,
        transactions=transactions.coordinators,
        coordinators_elsewhere=coordination.elsewhere,
        completion=transactions.completion,
        markers=transactions.markers,
        remote_transactions=transactions.remote,
        pending_writes=PendingWrites(parts.process.loop),
        share=coordination.share,
        logs=parts.logs,
        clock=clock,
        loop=parts.process.loop,
        executor=executor,
        supervisor=parts.process.supervisor,
        quotas=parts.quotas,
        fetch_bytes_max=values[FETCH_MAX_BYTES],
        reads_from_nearest=values[REPLICA_SELECTOR_CLASS] == RACK_AWARE_SELECTOR,
        authorizer=parts.authorizer,
        api_versions=claimed_versions(API_TABLE.values()),
    )
