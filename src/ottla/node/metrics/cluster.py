"""The cluster according to this node's image, and the quorum behind it."""

from collections.abc import Iterator

from ottla import __version__
from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.node.metrics.family import Section, copied, labelled
from ottla.node.quorum import MetadataQuorum
from ottla.raft.states import Role

SECTION = Section("Cluster and quorum")

_BUILD = SECTION.gauge(
    "ottla_build_info", "1, with the version as a label.", ("version", "node_id")
)
_BROKERS = SECTION.gauge("ottla_brokers", "Registered brokers.", ("state",))
_CONTROLLER = SECTION.gauge("ottla_controller", "1 on the node with the active controller.")
_ROLE = SECTION.gauge(
    "ottla_quorum_role",
    "1 for the role of this node in the metadata quorum, 0 for the others.",
    ("role",),
)
_VOTER = SECTION.gauge("ottla_quorum_voter", "1 if this node votes in the metadata quorum.")
_VOTERS = SECTION.gauge("ottla_quorum_voters", "Voters of the metadata quorum.")
_EPOCH = SECTION.gauge(
    "ottla_quorum_epoch", "The epoch of the metadata quorum; it grows with each election."
)
_LEADER = SECTION.gauge(
    "ottla_quorum_leader_id", "The node that leads the metadata quorum; -1 when none is known."
)
_COMMITTED = SECTION.gauge(
    "ottla_metadata_committed_offset", "The metadata before this offset is committed."
)
_APPLIED = SECTION.gauge(
    "ottla_metadata_applied_offset", "The metadata before this offset is in this node's image."
)
_TOPICS = SECTION.gauge("ottla_topics", "Topics of the cluster.")
_OFFLINE = SECTION.gauge(
    "ottla_offline_partitions", "Partitions of the cluster that have no leader."
)
_REASSIGNING = SECTION.gauge(
    "ottla_reassigning_partitions", "Partitions of the cluster that are being moved."
)
_KAFKA_BROKERS = SECTION.gauge(
    "kafka_brokers", "Brokers that are not fenced. From the controller's node alone."
)


def collect(node_id: int, image: MetadataImage, quorum: MetadataQuorum) -> Iterator[str]:
    yield from _BUILD.lines([(labelled(_BUILD.labels, (__version__, node_id)), 1)])
    brokers = copied(image.brokers.values)
    fenced_count = sum(broker.fenced for broker in brokers)
    active_count = len(brokers) - fenced_count
    yield from _BROKERS.by((("active", active_count), ("fenced", fenced_count)))
    yield from _quorum(quorum)
    states = [
        state for topic in copied(image.topics.values) for state in copied(topic.partitions.values)
    ]
    yield from _TOPICS.line(len(image.topics))
    yield from _OFFLINE.line(sum(state.leader == NO_LEADER for state in states))
    moving = sum(bool(state.adding_replicas or state.removing_replicas) for state in states)
    yield from _REASSIGNING.line(moving)
    if quorum.leadership.is_here:
        yield from _KAFKA_BROKERS.line(active_count)


def _quorum(quorum: MetadataQuorum) -> Iterator[str]:
    core, leader_id = quorum.driver.core, quorum.leadership.leader_id
    yield from _CONTROLLER.line(int(quorum.leadership.is_here))
    role = None if core is None else core.state.role
    yield from _ROLE.by((each.value, int(each is role)) for each in Role)
    yield from _VOTER.line(0 if core is None else int(core.is_voter))
    yield from _VOTERS.line(0 if core is None else len(core.voters.latest))
    yield from _EPOCH.line(-1 if core is None else core.state.epoch)
    yield from _LEADER.line(-1 if leader_id is None else leader_id)
    yield from _COMMITTED.line(-1 if core is None else core.high_watermark)
    yield from _APPLIED.line(quorum.applier.applied_offset)
