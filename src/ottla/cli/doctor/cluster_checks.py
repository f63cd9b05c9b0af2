"""A running cluster: its nodes, its quorum, its replicas, its disks and how they are spread."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ottla.cli.doctor.cluster_state import ClusterState
from ottla.cli.doctor.data_checks import check_space
from ottla.cli.doctor.finding import Finding, critical, note, some, warning
from ottla.cli.replica_plan import Place
from ottla.protocol.topics import INTERNAL_TOPICS

CLOCK_TOLERANCE_S: Final = 2.0
SKEW_MIN: Final = 4  # Partitions; what is less is noise.
SKEW: Final = 1.5  # Of the mean.
QUORUM_SIZE: Final = 3


def check_cluster(state: ClusterState) -> Iterator[Finding]:
    yield from check_nodes(state)
    yield from check_quorum(state)
    yield from check_partitions(state)
    yield from check_safety(state)
    yield from check_disks(state)
    yield from check_spread(state)
    if abs(state.controller_ahead_s) > CLOCK_TOLERANCE_S:
        direction = "ahead of" if state.controller_ahead_s > 0 else "behind"
        yield warning(
            "clock",
            f"the controller's clock is {abs(state.controller_ahead_s):.0f} s {direction} this"
            " machine's",
            "run a time service on every machine",
        )


def check_nodes(state: ClusterState) -> Iterator[Finding]:
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
            f"clients are told to connect to node {node_id} at {problem}",
            "correct advertised.listeners of that node, or the way to it",
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
            f"node {some(sorted(drained))} is drained and gets no replicas",
            f"`ottla node undrain {drained[0]}` once its maintenance is over",
        )


def check_quorum(state: ClusterState) -> Iterator[Finding]:
    quorum = state.quorum
    if quorum is None:
        return
    if quorum.leader < 0:
        yield critical(
            "quorum",
            "the metadata quorum has no leader: topics, leaders and configuration cannot change",
            "start the missing voters: " + some(sorted(quorum.voters)),
        )
    fenced = {node.node_id for node in state.nodes if node.fenced}
    missing = sorted(set(quorum.voters) & fenced)
    if missing and 2 * len(missing) >= len(quorum.voters) - 1:
        yield critical(
            "quorum",
            f"{len(missing)} of {len(quorum.voters)} voters are down; with one more the cluster"
            " has no controller",
            f"start node {some(missing)}",
        )
    if len(state.nodes) >= QUORUM_SIZE > len(quorum.voters):
        yield warning(
            "quorum",
            f"only {len(quorum.voters)} of {len(state.nodes)} nodes vote on the metadata",
            "wait for a moment after nodes have joined; then look at quorum.size and their logs",
        )


def check_partitions(state: ClusterState) -> Iterator[Finding]:
    leaderless: list[Place] = []
    too_few: list[Place] = []
    behind: list[Place] = []
    for place, one in sorted(state.partitions.items()):
        required = min(state.minimums.get(place.topic, 1), len(one.replica_nodes))
        if one.leader_id < 0:
            leaderless.append(place)
        elif len(one.isr_nodes) < required:
            too_few.append(place)
        elif set(one.isr_nodes) != set(one.replica_nodes):
            behind.append(place)
    if leaderless:
        yield critical(
            "replication",
            f"{len(leaderless)} partitions have no leader, and nobody can read or write them:"
            f" {some(leaderless)}",
            "start the nodes that hold them; `ottla topics unhealthy` names them",
        )
    if too_few:
        yield critical(
            "replication",
            f"{len(too_few)} partitions refuse writes with acks=all, because fewer replicas than"
            f" min.insync.replicas are in sync: {some(too_few)}",
            "start the nodes that are missing; `ottla topics unhealthy` names them",
        )
    if behind:
        yield warning(
            "replication",
            f"{len(behind)} partitions have replicas that are not in sync: {some(behind)}",
            "wait if a node has just started, otherwise look at its log; `ottla topics unhealthy`",
        )
    for place, replicas in sorted(state.damage.items()):
        yield critical(
            "replication",
            f"{place} is {some(replicas)}",
            "docs/internals/damage.md says what can be saved",
        )


def check_safety(state: ClusterState) -> Iterator[Finding]:
    """What the next failure would do."""
    if len(state.nodes) < 2:
        return
    own: dict[str, int] = {}  # The fewest replicas of a partition, by topic.
    for place, one in sorted(state.partitions.items()):
        if place.topic not in INTERNAL_TOPICS:
            count = len(one.replica_nodes)
            own[place.topic] = min(count, own.get(place.topic, count))
    single = [topic for topic, count in own.items() if count == 1]
    if single:
        factor = min(3, len(state.nodes))
        yield warning(
            "replication",
            f"{len(single)} topics have one replica and are lost with its disk: {some(single)}",
            f"ottla topics reassign {single[0]} --replication-factor {factor}",
        )
    brittle = [topic for topic, count in own.items() if 1 < count <= state.minimums.get(topic, 1)]
    if brittle:
        yield warning(
            "replication",
            "min.insync.replicas is as high as the number of replicas, so that one node that stops"
            f" stops all writes: {some(brittle)}",
            f"ottla configs alter --topic {brittle[0]} --set min.insync.replicas="
            f"{own[brittle[0]] - 1}",
        )


def check_disks(state: ClusterState) -> Iterator[Finding]:
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


def check_spread(state: ClusterState) -> Iterator[Finding]:
    """Over nodes that are active and not drained."""
    able = [node_id for node_id, each in state.settings.items() if not each.cordoned]
    if len(able) < 2:
        return
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    strangers: list[Place] = []
    for place, one in sorted(state.partitions.items()):
        leaders[one.leader_id] += one.leader_id in able
        replicas.update(node_id for node_id in one.replica_nodes if node_id in able)
        preferred = one.replica_nodes[0] if one.replica_nodes else -1
        if preferred in able and one.leader_id not in (-1, preferred):
            strangers.append(place)
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


def is_skewed(counts: Counter[int], nodes: list[int]) -> bool:
    mean = sum(counts[node] for node in nodes) / len(nodes)
    most = max(counts[node] for node in nodes)
    return most - mean >= SKEW_MIN and most >= SKEW * mean


def _by_node(counts: Counter[int], nodes: list[int]) -> str:
    return ", ".join(f"node {node} has {counts[node]}" for node in sorted(nodes))
