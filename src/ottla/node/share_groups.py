"""What serves share groups on this node: share coordinators, and share-partitions it leads."""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import Executor

from ottla.controller.image import MetadataImage
from ottla.groups.share.config import (
    GROUP_SHARE_MAX_SHARE_SESSIONS,
    SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT,
    STATE_TOPIC_PRUNE_INTERVAL_MS,
    ShareConfig,
)
from ottla.groups.share.sessions import ShareSessions
from ottla.groups.share.state_coordinator import ShareStateMachine
from ottla.machine.contract import RecordCodec
from ottla.machine.partitioning import partition_for
from ottla.protocol.config import ConfigValues
from ottla.protocol.topics import SHARE_GROUP_STATE_TOPIC
from ottla.replication.coordinators import Coordinators
from ottla.replication.dead_letters import DeadLetters
from ottla.replication.manager import ReplicaManager
from ottla.replication.share_groups import ShareGroups
from ottla.replication.share_partitions import SharePartitions
from ottla.replication.share_persister import SharePersister
from ottla.replication.share_state_pruning import ShareStatePruning
from ottla.runtime.clock import Clock
from ottla.runtime.controller_client import ControllerClient
from ottla.runtime.supervisor import Supervisor


def make_share_groups(
    replicas: ReplicaManager,
    image: MetadataImage,
    values: ConfigValues,
    config: Callable[[str], ShareConfig],
    controller: ControllerClient,
    clock: Clock,
    supervisor: Supervisor,
    loop: AbstractEventLoop,
    executor: Executor,
) -> ShareGroups:
    """Each share coordinator begins when the partition that it lives on is taken up.

    `values` are those of the broker, `config` what holds for a group.
    """
    coordinators = Coordinators(
        SHARE_GROUP_STATE_TOPIC,
        image,
        partition_for,
        lambda _: ShareStateMachine(
            catalog=image, updates_per_snapshot=values[SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT]
        ),
        _codec,
        clock,
        supervisor,
        loop,
        executor,
    )
    persister = SharePersister(coordinators)
    dead_letters = DeadLetters(replicas, image, controller, clock, loop, executor)
    partitions = SharePartitions(replicas, persister, dead_letters, config, clock, loop)
    replicas.listen(coordinators.leadership_listener)
    replicas.listen(partitions.leadership_listener)
    sessions = ShareSessions(values[GROUP_SHARE_MAX_SHARE_SESSIONS])
    interval_ms = values[STATE_TOPIC_PRUNE_INTERVAL_MS]
    pruning = ShareStatePruning(coordinators, replicas, image, interval_ms, loop, executor)
    return ShareGroups(coordinators, persister, partitions, sessions, pruning, config)


def _codec() -> RecordCodec:
    from ottla.groups.record_codec import FamilyCodec
    from ottla.groups.share.state_records import SHARE_STATE_FAMILIES

    return FamilyCodec(SHARE_STATE_FAMILIES)
