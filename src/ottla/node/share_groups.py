"""Share groups on this node: share coordinators, and the share-partitions that it leads."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from random import Random

from ottla.controller.image import MetadataImage
from ottla.coordination.coordinators import Coordinators
from ottla.coordination.dead_letter_office import DeadLetterOffice
from ottla.coordination.dead_letter_routes import DeadLetterRoutes
from ottla.coordination.record_routes import AskBroker, RecordRoutes
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
    ShareConfig,
)
from ottla.groups.share.sessions import ShareSessions
from ottla.groups.share.state_coordinator import SharePartitionKey, ShareStateMachine
from ottla.machine.contract import RecordCodec
from ottla.machine.partitioning import partition_for
from ottla.network.peers import Peers
from ottla.protocol.addresses import Address
from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import SHARE_GROUP_STATE_TOPIC
from ottla.replication.manager import ReplicaManager
from ottla.runtime.controller import Controller
from ottla.runtime.process import Process


def make_share_groups(
    process: Process,
    *,
    node_id: int,
    replicas: ReplicaManager,
    image: MetadataImage,
    values: ConfigValues,
    config: Callable[[str], ShareConfig],
    controller: Controller,
    coordinator_at: Callable[[int], ShareCoordinator],
    ask_to_produce: AskBroker,
    log_ends: RemoteLogEnds,
    random: Random,
) -> ShareGroups:
    """Each share coordinator starts when this node begins to lead its partition.

    `values` are the broker's, `config` returns a group's, `coordinator_at` returns the coordinators
    on other brokers, `ask_to_produce` sends dead letters to them.
    """
    coordinators = Coordinators(
        SHARE_GROUP_STATE_TOPIC,
        image,
        partition_for,
        lambda _: ShareStateMachine(
            catalog=image, updates_per_snapshot=values[SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT]
        ),
        _codec,
        process,
    )
    local = LocalShareCoordinator(coordinators)

    def find(key: SharePartitionKey) -> ShareCoordinator:
        partition = coordinators.partition_of(key.coordinator_key)
        state = None if partition is None else image.partition(SHARE_GROUP_STATE_TOPIC, partition)
        if state is None or state.leader == node_id:
            return local
        return coordinator_at(state.leader)

    persister = SharePersister(find)
    clock, loop, supervisor = process.clock, process.loop, process.supervisor
    appends = RecordRoutes(node_id, replicas, image, ask_to_produce, process)
    routes = DeadLetterRoutes(appends, image, controller, process)
    office = DeadLetterOffice(routes, config, clock, random, supervisor)
    partitions = SharePartitions(
        replicas, persister, office, config, clock=clock, random=random, loop=loop
    )
    replicas.listen(coordinators.leadership_listener)
    replicas.listen(partitions.leadership_listener)
    sessions = ShareSessions(values[GROUP_SHARE_MAX_SHARE_SESSIONS])
    interval_ms = values[STATE_TOPIC_PRUNE_INTERVAL_MS]
    pruning = ShareStatePruning(coordinators, replicas, image, interval_ms, loop, process.executor)
    letters = WaitingLetters(
        node_id=node_id,
        coordinators=coordinators,
        partitions=partitions,
        image=image,
        broker_at=coordinator_at,
        random=random,
        supervisor=supervisor,
    )
    return ShareGroups(
        coordinators, local, persister, partitions, sessions, pruning, letters, log_ends, config
    )


def share_coordinator_on(
    broker_id: int,
    address_of: Callable[[int], Address | None],
    peers: Peers,
    loop: AbstractEventLoop,
) -> ShareCoordinator:
    """The imports are deferred until there is another broker to ask."""
    from ottla.coordination.remote_share_coordinator import RemoteShareCoordinator, exchange_with

    address = address_of(broker_id)
    if address is None:
        raise ApiError(ErrorCode.coordinator_not_available, "the coordinator has no leader now")
    return RemoteShareCoordinator(exchange_with(peers, address), loop)


def _codec() -> RecordCodec:
    from ottla.groups.record_codec import FamilyCodec
    from ottla.groups.share.state_records import SHARE_STATE_FAMILIES

    return FamilyCodec(SHARE_STATE_FAMILIES)
