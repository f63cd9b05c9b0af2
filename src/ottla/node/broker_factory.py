"""Builds what request handlers use from the parts of a node."""

from ottla.controller.config import BROKER_SESSION_TIMEOUT_MS
from ottla.groups.config import GROUP_COORDINATOR_REBALANCE_PROTOCOLS
from ottla.handlers.api import claimed_versions
from ottla.handlers.broker import Broker, Settings
from ottla.handlers.switches import keys_off
from ottla.handlers.table import API_TABLE, TELEMETRY_KEYS
from ottla.network.security_config import CONTROLLER_LISTENER_NAMES
from ottla.node.config import METRICS_CLIENTS_MAX, TELEMETRY_MAX_BYTES, has_metrics
from ottla.node.coordination import Coordination
from ottla.node.node_parts import Parts
from ottla.node.quorum import MetadataQuorum
from ottla.node.registration import Registration
from ottla.replication.config import FETCH_MAX_BYTES, RACK_AWARE_SELECTOR, REPLICA_SELECTOR_CLASS
from ottla.replication.directory_moves import DirectoryMoves
from ottla.replication.follower_sessions import FollowerSessions
from ottla.runtime.client_metrics import ClientMetrics
from ottla.runtime.producer_ids import ProducerIds
from ottla.transactions.config import TRANSACTION_TWO_PHASE_COMMIT_ENABLE


def make_broker(
    parts: Parts,
    quorum: MetadataQuorum,
    registration: Registration,
    coordination: Coordination,
) -> Broker:
    values, replicas = parts.values, parts.replicas
    serves_metrics = has_metrics(values)
    session_s = values[BROKER_SESSION_TIMEOUT_MS] / 1000
    controllers: tuple[str, ...] = values[CONTROLLER_LISTENER_NAMES]
    protocols: tuple[str, ...] = values[GROUP_COORDINATOR_REBALANCE_PROTOCOLS]
    claimed = claimed_versions(
        API_TABLE.values(), two_phase=values[TRANSACTION_TWO_PHASE_COMMIT_ENABLE]
    )
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
        directory_moves=DirectoryMoves(parts.logs, replicas, parts.process),
        follower_sessions=FollowerSessions(replicas, replicas.fetch_sessions.new_id, parts.process),
        groups=coordination.groups,
        transactions=coordination.transactions,
        coordinators_elsewhere=coordination.elsewhere,
        share=coordination.share,
        logs=parts.logs,
        process=parts.process,
        settings=Settings(
            fetch_bytes_max=values[FETCH_MAX_BYTES],
            reads_from_nearest=values[REPLICA_SELECTOR_CLASS] == RACK_AWARE_SELECTOR,
            api_versions={
                key: versions
                for key, versions in claimed.items()
                if serves_metrics or key not in TELEMETRY_KEYS
            },
            controller_listeners=frozenset(name.upper() for name in controllers),
            keys_off=keys_off(protocols),
        ),
        quotas=parts.quotas,
        authorizer=parts.authorizer,
        client_metrics=ClientMetrics(
            parts.feed.image,
            parts.process.clock,
            bytes_max=values[TELEMETRY_MAX_BYTES],
            clients_max=values[METRICS_CLIENTS_MAX] if serves_metrics else 0,
        ),
        new_uuid=parts.environment.new_uuid,
    )
