"""A running cluster: its nodes, its quorum, its replicas, its disks and how they are spread."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ottla.cli.doctor.cluster_state import ExaminedCluster
from ottla.cli.doctor.data_checks import check_space
from ottla.cli.doctor.finding import Finding, critical, note, numbered, warning
from ottla.cli.output import some
from ottla.cli.probe import PREFIX as PROBE_PREFIX
from ottla.protocol.topics import INTERNAL_TOPICS, TopicPartition

CLOCK_TOLERANCE_S: Final = 2.0
SKEW_MIN: Final = 4  # Partitions; what is less is noise.
SKEW: Final = 1.5  # Of the mean.
QUORUM_SIZE: Final = 3


def check_cluster(state: ExaminedCluster) -> Iterator[Finding]:
    checks = (check_nodes, check_quorum, check_partitions, check_safety, check_disks, check_spread)
    for check in checks:
        yield from check(state)
    if abs(state.controller_ahead_s) > CLOCK_TOLERANCE_S:
        direction = "ahead of" if state.controller_ahead_s > 0 else "behind"
        yield warning(
            "clock",
            f"the controller's clock is {abs(state.controller_ahead_s):.0f} s {direction} this"
            " machine's",
            "run a time service on every machine",
        )


def check_nodes(state: ExaminedCluster) -> Iterator[Finding]:
    for node in state.nodes:
        if node.fenced:
            yield critical(
                "nodes",
                f"node {node.node_id} at {node.host}:{node.port} is down or cut off",
                f"start it; if it is gone for good, `ottla node remove {node.node_id}`",
            )
    for node_id, problem in sorted(state.unreachable.items()):
        yield critical(
            "listeners",
            f"node {node_id} does not answer where clients are told to connect to it, {problem}",
            "start it; if it runs, correct its advertised.listeners, or the way to it",
        )
    versions = {each.version for each in state.settings.values() if each.version}
    if len(versions) > 1:
        yield warning(
            "versions",
            f"nodes run different versions: {', '.join(sorted(versions))}",
            "finish the upgrade, one node at a time, with `ottla node wait` between them",
        )
    drained = [node_id for node_id, each in state.settings.items() if each.cordoned]
    if drained:
        yield note(
            "nodes",
            f"{_named(sorted(drained))} {_is_or_are(len(drained))} drained: no replicas go there",
            f"`ottla node undrain {drained[0]}` once its maintenance is over",
        )


def check_quorum(state: ExaminedCluster) -> Iterator[Finding]:
    quorum = state.quorum
    if quorum is None:
        return
    down = {node.node_id for node in state.nodes if node.fenced} | set(state.unreachable)
    if quorum.leader < 0:
        yield critical(
            "quorum",
            "the metadata quorum has no leader: topics, leaders and configuration cannot change",
            f"start {_named(sorted(down))}" if down else "look at the nodes' logs",
        )
        return
    missing = sorted(set(quorum.voters) & down)
    voters = f"{len(missing)} of {len(quorum.voters)} voters {_is_or_are(len(missing))} down"
    if 2 * len(missing) >= len(quorum.voters):
        yield critical(
            "quorum",
            f"{voters} or unreachable: the cluster has no controller, and topics, leaders and"
            " configuration cannot change",
            f"start {_named(missing)}",
        )
    elif missing and 2 * (len(missing) + 1) >= len(quorum.voters):
        yield critical(
            "quorum",
            f"{voters} or unreachable; with one more the cluster has no controller",
            f"start {_named(missing)}",
        )
    if len(state.nodes) >= QUORUM_SIZE > len(quorum.voters):
        yield warning(
            "quorum",
            f"only {len(quorum.voters)} of {len(state.nodes)} nodes vote on the metadata",
            "wait for a moment after nodes have joined; then look at quorum.size and their logs",
        )


def check_partitions(state: ExaminedCluster) -> Iterator[Finding]:
    leaderless: list[TopicPartition] = []
    too_few: list[TopicPartition] = []
    behind: list[TopicPartition] = []
    for topic_partition, partition in sorted(state.partitions.items()):
        required = min(state.minimums.get(topic_partition.topic, 1), len(partition.replica_nodes))
        if partition.leader_id < 0:
            leaderless.append(topic_partition)
        elif len(partition.isr_nodes) < required:
            too_few.append(topic_partition)
        elif set(partition.isr_nodes) != set(partition.replica_nodes):
            behind.append(topic_partition)
    if leaderless:
        yield critical(
            "replication",
            f"{numbered(len(leaderless), 'partition has', 'partitions have')} no leader, so that"
            f" nobody can read or write there: {some(leaderless)}",
            "start the nodes that hold them; `ottla topics unhealthy` names them",
        )
    if too_few:
        yield critical(
            "replication",
            f"{numbered(len(too_few), 'partition refuses', 'partitions refuse')} writes with"
            " acks=all, because fewer replicas than min.insync.replicas are in sync:"
            f" {some(too_few)}",
            "start the nodes that are missing; `ottla topics unhealthy` names them",
        )
    if behind:
        yield warning(
            "replication",
            f"{numbered(len(behind), 'partition has', 'partitions have')} replicas that are not in"
            f" sync: {some(behind)}",
            "wait if a node has just started; otherwise `ottla topics unhealthy` names the node"
            " whose log to look at",
        )
    for topic_partition, replicas in sorted(state.damage.items()):
        yield critical(
            "replication",
            f"{topic_partition} is {some(replicas)}",
            "docs/internals/damage.md says what can be saved",
        )


def check_safety(state: ExaminedCluster) -> Iterator[Finding]:
    """What the next failure would do."""
    if len(state.nodes) < 2:
        return
    own: dict[str, int] = {}  # The fewest replicas of a partition, by topic.
    for topic_partition, partition in sorted(state.partitions.items()):
        if topic_partition.topic not in INTERNAL_TOPICS and not topic_partition.topic.startswith(
            PROBE_PREFIX
        ):
            count = len(partition.replica_nodes)
            own[topic_partition.topic] = min(count, own.get(topic_partition.topic, count))
    single = [topic for topic, count in own.items() if count == 1]
    if single:
        factor = min(3, len(state.nodes))
        yield warning(
            "replication",
            f"{numbered(len(single), 'topic has', 'topics have')} only one replica, so that a"
            f" failed disk loses records: {some(single)}",
            f"ottla topics reassign {single[0]} --replication-factor {factor}",
        )
    brittle = [topic for topic, count in own.items() if 1 < count <= state.minimums.get(topic, 1)]
    if brittle:
        yield warning(
            "replication",
            "min.insync.replicas is as high as the number of replicas, so that writes with acks=all"
            f" stop with one node: {some(brittle)}",
            f"ottla configs alter --topic {brittle[0]} --set min.insync.replicas="
            f"{own[brittle[0]] - 1}",
        )


def check_disks(state: ExaminedCluster) -> Iterator[Finding]:
    for directory in state.directories:
        name = f"{directory.path} of node {directory.node}"
        if directory.is_offline:
            yield critical(
                "disk",
                f"{name} is offline: the disk failed, or is full",
                "look at the node's log, repair or replace the disk, start the node again",
            )
        else:
            yield from check_space(name, directory.total, directory.free)


def check_spread(state: ExaminedCluster) -> Iterator[Finding]:
    """Over nodes that are active and not drained."""
    able = [node_id for node_id, each in state.settings.items() if not each.cordoned]
    if len(able) < 2:
        return
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    strangers: list[TopicPartition] = []
    for topic_partition, partition in sorted(state.partitions.items()):
        leaders[partition.leader_id] += partition.leader_id in able
        replicas.update(node_id for node_id in partition.replica_nodes if node_id in able)
        preferred = partition.replica_nodes[0] if partition.replica_nodes else -1
        if preferred in able and partition.leader_id not in (-1, preferred):
            strangers.append(topic_partition)
    if is_skewed(replicas, able):
        yield warning(
            "skew",
            "replicas are spread unevenly: " + _by_node(replicas, able),
            "ottla rebalance --throttle 50MB",
        )
    elif is_skewed(leaders, able) or len(strangers) >= SKEW_MIN:
        yield warning(
            "skew",
            "leaders are spread unevenly: " + _by_node(leaders, able),
            "ottla topics elect-leaders" if strangers else "ottla rebalance",
        )


def _named(nodes: list[int]) -> str:
    return f"{'node' if len(nodes) == 1 else 'nodes'} {some(nodes)}"


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def is_skewed(counts: Counter[int], nodes: list[int]) -> bool:
    mean = sum(counts[node] for node in nodes) / len(nodes)
    most = max(counts[node] for node in nodes)
    return most - mean >= SKEW_MIN and most >= SKEW * mean


def _by_node(counts: Counter[int], nodes: list[int]) -> str:
    return ", ".join(f"node {node} has {counts[node]}" for node in sorted(nodes))
