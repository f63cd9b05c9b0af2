"""The parts of a node: its configuration, image, storage, replicas and connections.

None of them runs yet. `Node` starts them in order; what depends on more is created in the process.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from ottla.controller.effective_configs import ConfigRules, EffectiveConfigs
from ottla.controller.image import MetadataImage
from ottla.groups.group_config import validate_group
from ottla.network.config import MAX_CONNECTIONS, NetworkConfig
from ottla.network.durations import Durations
from ottla.network.peers import Peers
from ottla.network.security_config import (
    ALLOW_EVERYONE_IF_NO_ACL_FOUND,
    AUTHORIZER_CLASS_NAME,
    SecurityConfig,
)
from ottla.node.audit import AuditLog, make_audit_log
from ottla.node.config import (
    BROKER_SCHEMA,
    GROUP_SCHEMA,
    NODE_ID,
    TOPIC_SCHEMA,
)
from ottla.node.descriptors import DescriptorShares, descriptor_limit, share_descriptors
from ottla.node.environment import Environment
from ottla.node.group_configs import GroupConfigs
from ottla.node.locks import Locks
from ottla.protocol.config import ConfigValues
from ottla.protocol.entities import entity
from ottla.replication.config import FETCH_SESSION_SLOTS_MAX, REPLICA_LAG_TIME_MAX_MS
from ottla.replication.fetch_sessions import FetchSessions
from ottla.replication.manager import ReplicaManager, ReplicaSettings
from ottla.replication.partition import FlushPolicy
from ottla.runtime.flusher import Flushable, Flusher
from ottla.runtime.metadata_feed import MetadataFeed
from ottla.runtime.other_brokers import OtherBrokers
from ottla.runtime.process import Process
from ottla.runtime.supervisor import Supervisor
from ottla.security.authorizer import Authorizer
from ottla.security.client_quotas import ClientQuotas
from ottla.storage.broker_config import FLUSH_POLICY, LOG_DIRS, LOG_OPEN_FILES_MAX, topic_defaults
from ottla.storage.config import LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager

OnFailure = Callable[[BaseException], object]


@entity
class Parts:
    values: ConfigValues
    node_id: int
    directories: list[str]
    environment: Environment
    process: Process
    on_failure: OnFailure  # The node must stop.
    rules: ConfigRules
    feed: MetadataFeed
    configs: EffectiveConfigs
    group_configs: GroupConfigs
    network: NetworkConfig
    locks: Locks
    audit: AuditLog | None  # None if there are no logins and no refusals.
    authorizer: Authorizer | None
    quotas: ClientQuotas
    shares: DescriptorShares
    logs: LogManager
    replicas: ReplicaManager
    peers: Peers
    brokers: OtherBrokers
    flushes: Durations  # Of awaited syncs.


def make_parts(
    given: Mapping[str, object],
    environment: Environment,
    *,
    on_failure: OnFailure,
    on_directory_failure: Callable[[StorageError], object],
    on_full_directory: Callable[[], object],
) -> Parts:
    """`given` are the validated configuration values that were set.

    `on_directory_failure` and `on_full_directory` are called in any thread.
    """
    values = ConfigValues(given)
    node_id = values[NODE_ID]
    directories = [str(Path(path).absolute()) for path in values[LOG_DIRS]]
    rules = ConfigRules(
        TOPIC_SCHEMA, BROKER_SCHEMA, given, topic_defaults, GROUP_SCHEMA, validate_group
    )
    feed = MetadataFeed()
    configs = EffectiveConfigs(feed.image, rules, node_id)
    network = NetworkConfig.of(values)
    security = SecurityConfig.of(values, network.listeners)
    audit = make_audit_log(values, security, environment.clock, node_id)
    locks = Locks(values, security, feed.image, audit, environment.clock)
    shares = share_descriptors(
        descriptor_limit(),
        log_files=values[LOG_OPEN_FILES_MAX],
        connections=MAX_CONNECTIONS.default,
    )

    def log_config(topic: str) -> LogConfig:
        return LogConfig.of(configs.topic_values(topic))

    logs = LogManager(
        directories,
        environment.filesystem,
        environment.clock.now_ms,
        broker=ConfigValues({**given, LOG_OPEN_FILES_MAX.name: shares.log_files}),
        config_of_topic=log_config,
        on_failure=on_directory_failure,
        on_full=on_full_directory,
        new_id=environment.new_uuid,
        new_threads=environment.new_threads,
    )
    process = _make_process(environment, on_failure)
    peers = _make_peers(process, node_id, environment, locks)
    flushes = Durations()
    return Parts(
        values=values,
        node_id=node_id,
        directories=directories,
        environment=environment,
        process=process,
        on_failure=on_failure,
        rules=rules,
        feed=feed,
        configs=configs,
        group_configs=GroupConfigs(configs, feed.image),
        network=network,
        locks=locks,
        audit=audit,
        authorizer=_make_authorizer(values, security, feed.image, audit),
        quotas=ClientQuotas(network.quota_windows),
        shares=shares,
        logs=logs,
        replicas=_make_replicas(values, logs, log_config, environment, process, flushes),
        peers=peers,
        brokers=OtherBrokers(feed.image, peers, locks.inter_broker_listener),
        flushes=flushes,
    )


def _make_process(environment: Environment, on_failure: OnFailure) -> Process:
    loop = asyncio.get_running_loop()
    return Process(
        loop=loop,
        clock=environment.clock,
        executor=environment.executor,
        supervisor=Supervisor(loop, on_failure),
    )


def _make_peers(process: Process, node_id: int, environment: Environment, locks: Locks) -> Peers:
    random = environment.random.random
    return Peers(process.loop, f"node-{node_id}", random, locks.peer_tls, locks.peer_login)


def _make_authorizer(
    values: ConfigValues,
    security: SecurityConfig,
    image: MetadataImage,
    audit: AuditLog | None,
) -> Authorizer | None:
    if not values[AUTHORIZER_CLASS_NAME]:
        return None
    authorizer = Authorizer(
        image.acls,
        security.super_users,
        allow_everyone=values[ALLOW_EVERYONE_IF_NO_ACL_FOUND],
        on_refused=None if audit is None else audit.on_refused,
    )
    authorizer.is_loaded = False
    return authorizer


def _make_replicas(
    values: ConfigValues,
    logs: LogManager,
    log_config: Callable[[str], LogConfig],
    environment: Environment,
    process: Process,
    flushes: Durations,
) -> ReplicaManager:
    def on_flush_failure(log: Flushable, error: BaseException) -> None:
        assert isinstance(log, PartitionLog)
        replicas.on_flush_failure(log, error)

    settings = ReplicaSettings(
        values[NODE_ID], FlushPolicy(values[FLUSH_POLICY]), values[REPLICA_LAG_TIME_MAX_MS]
    )
    sessions = FetchSessions(
        values[FETCH_SESSION_SLOTS_MAX], environment.random.randrange(1, 2**30)
    )
    replicas = ReplicaManager(
        settings,
        logs,
        log_config,
        Flusher(process.loop, process.executor, on_flush_failure, flushes),
        sessions,
        process.clock,
    )
    return replicas
