"""Share groups on this node: share coordinators, and the share-partitions that it leads."""

from functools import partial

from ottla.coordination.coordinators import Coordinators
from ottla.coordination.dead_letter_office import DeadLetterOffice
from ottla.coordination.dead_letter_routes import DeadLetterRoutes
from ottla.coordination.record_routes import RecordRoutes
from ottla.coordination.remote_log_ends import RemoteLogEnds
from ottla.coordination.share_coordinator import LocalShareCoordinator, ShareCoordinator
from ottla.coordination.share_groups import ShareGroups
from ottla.coordination.share_partitions import SharePartitions
from ottla.coordination.share_persister import SharePersister
from ottla.coordination.share_state_pruning import ShareStatePruning
from ottla.coordination.waiting_letters import WaitingLetters
from ottla.groups.share.config import (
    GROUP_SHARE_MAX_SHARE_SESSIONS,
    SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT,
    STATE_TOPIC_PRUNE_INTERVAL_MS,
)
from ottla.groups.share.sessions import ShareSessions
from ottla.groups.share.state_coordinator import SharePartitionKey, ShareStateMachine
from ottla.machine.contract import RecordCodec
from ottla.node.node_parts import Parts
from ottla.protocol.topics import SHARE_GROUP_STATE_TOPIC
from ottla.runtime.controller import Controller

LOOKUP_TIMEOUT_MS = 1_000  # A client waits for it, and retries.


def make_share_groups(parts: Parts, controller: Controller) -> ShareGroups:
    """Each share coordinator starts when this node begins to lead its partition."""
    node_id, image, replicas = parts.node_id, parts.feed.image, parts.replicas
    values, config, brokers = parts.values, parts.group_configs.share, parts.brokers
    process, random = parts.process, parts.environment.random
    clock, loop, supervisor = process.clock, process.loop, process.supervisor
    coordinators = Coordinators(
        topic=SHARE_GROUP_STATE_TOPIC,
        catalog=image,
        create_machine=lambda _: ShareStateMachine(
            catalog=image, updates_per_snapshot=values[SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT]
        ),
        create_codec=_codec,
        process=process,
    )
    local = LocalShareCoordinator(coordinators)

    def coordinator_at(broker_id: int) -> ShareCoordinator:
        """The import is deferred until there is another broker to ask."""
        from ottla.coordination import remote_share_coordinator as remote

        ask = brokers.asking("share state", remote.TIMEOUT_MS)
        return remote.RemoteShareCoordinator(partial(ask, broker_id), loop)

    def find(key: SharePartitionKey) -> ShareCoordinator:
        partition = coordinators.partition_of(key.coordinator_key)
        state = None if partition is None else image.partition(SHARE_GROUP_STATE_TOPIC, partition)
        if state is None or state.leader == node_id:
            return local
        return coordinator_at(state.leader)

    persister = SharePersister(find)
    appends = RecordRoutes(node_id, replicas, image, brokers.asking("dead letters"), process)
    routes = DeadLetterRoutes(appends, image, controller, process)
    office = DeadLetterOffice(routes, config, clock, random, supervisor)
    partitions = SharePartitions(
        replicas=replicas,
        persister=persister,
        office=office,
        config=config,
        clock=clock,
        random=random,
        loop=loop,
    )
    replicas.leadership_listeners.append(coordinators.leadership_listener)
    replicas.leadership_listeners.append(partitions.leadership_listener)
    sessions = ShareSessions(values[GROUP_SHARE_MAX_SHARE_SESSIONS])
    interval_ms = values[STATE_TOPIC_PRUNE_INTERVAL_MS]
    pruning = ShareStatePruning(
        coordinators=coordinators,
        replicas=replicas,
        catalog=image,
        interval_ms=interval_ms,
        process=process,
    )
    letters = WaitingLetters(
        node_id=node_id,
        coordinators=coordinators,
        partitions=partitions,
        image=image,
        broker_at=coordinator_at,
        random=random,
        supervisor=supervisor,
    )
    log_ends = RemoteLogEnds(image, brokers.asking("log ends", LOOKUP_TIMEOUT_MS))
    return ShareGroups(
        coordinators, local, persister, partitions, sessions, pruning, letters, log_ends, config
    )


def _codec() -> RecordCodec:
    from ottla.groups.share.state_records import SHARE_STATE_FAMILIES
    from ottla.machine.record_codec import FamilyCodec

    return FamilyCodec(SHARE_STATE_FAMILIES)
