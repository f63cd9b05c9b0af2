"""What the doctor reports about clusters, configurations and data directories."""

import datetime as dt
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kio.schema.metadata.v13.response import MetadataResponsePartition
from kio.schema.types import BrokerId
from kio.static.primitive import i32
from rich.console import Console

from ottla.cli.cluster_nodes import ClusterNode, NodeSettings, Quorum
from ottla.cli.connection import Connection
from ottla.cli.damaged_replicas import DamagedReplica
from ottla.cli.doctor.cluster_checks import check_cluster
from ottla.cli.doctor.cluster_state import Directory, ExaminedCluster
from ottla.cli.doctor.config_checks import check_config, check_expiry
from ottla.cli.doctor.data_checks import check_data, check_space
from ottla.cli.doctor.doctor import doctor
from ottla.cli.doctor.finding import Finding, Severity
from ottla.cli.doctor.machine_checks import check_files
from ottla.cli.top import Sample, render, top, topic_rows
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.testing import EmbeddedBroker

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
GIGABYTE = 10**9


def partition(
    leader: int, replicas: tuple[int, ...], isr: tuple[int, ...] | None = None
) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=ErrorCode.none,
        partition_index=i32(0),
        leader_id=BrokerId(leader),
        replica_nodes=tuple(map(BrokerId, replicas)),
        isr_nodes=tuple(map(BrokerId, replicas if isr is None else isr)),
        offline_replicas=(),
    )


HEALTHY = ExaminedCluster(
    nodes=[ClusterNode(node, "localhost", 9091 + node, None, False) for node in (1, 2, 3)],
    settings={node: NodeSettings("1.0") for node in (1, 2, 3)},
    unreachable={},
    quorum=Quorum(1, dict.fromkeys((1, 2, 3)), set()),
    partitions={
        TopicPartition("orders", index): partition(
            1 + index % 3, (1 + index % 3, 1 + (index + 1) % 3)
        )
        for index in range(6)
    },
    minimums={"orders": 1},
    damage={},
    directories=[Directory(1, "/data", False, 100 * GIGABYTE, 50 * GIGABYTE)],
    controller_ahead_s=0.0,
)


def with_partition(
    state: MetadataResponsePartition,
) -> dict[TopicPartition, MetadataResponsePartition]:
    return {**HEALTHY.partitions, TopicPartition("orders", 0): state}


def fenced(*ids: int) -> list[ClusterNode]:
    return [node._replace(fenced=node.node_id in ids) for node in HEALTHY.nodes]


def lonely(count: int) -> dict[TopicPartition, MetadataResponsePartition]:
    return {TopicPartition("orders", index): partition(1, (1, 2)) for index in range(count)}


def test_nothing_is_said_of_a_healthy_cluster() -> None:
    assert list(check_cluster(HEALTHY)) == []


def test_the_topics_of_the_probe_have_one_replica_each() -> None:
    probed = {**HEALTHY.partitions, TopicPartition("ottla-probe-1", 0): partition(1, (1,))}
    assert list(check_cluster(HEALTHY._replace(partitions=probed))) == []


@pytest.mark.parametrize(
    ("state", "severity", "problem", "repair"),
    [
        (HEALTHY._replace(nodes=fenced(3)), "critical", "node 3", "ottla node remove 3"),
        (
            HEALTHY._replace(unreachable={2: "inside:9093 (no such name)"}),
            "critical",
            "node 2 does not answer where clients are told to connect to it, inside:9093",
            "advertised.listeners",
        ),
        (
            HEALTHY._replace(settings={1: NodeSettings("1.0"), 2: NodeSettings("1.1")}),
            "warning",
            "1.0, 1.1",
            "finish the upgrade",
        ),
        (
            HEALTHY._replace(settings={**HEALTHY.settings, 3: NodeSettings("1.0", True)}),
            "note",
            "node 3 is drained",
            "ottla node undrain 3",
        ),
        (
            HEALTHY._replace(
                quorum=Quorum(-1, {}, set()), unreachable={2: "two:9092", 3: "three:9092"}
            ),
            "critical",
            "no leader",
            "start nodes 2, 3",
        ),
        (
            HEALTHY._replace(nodes=fenced(3)),
            "critical",
            "1 of 3 voters is down or unreachable; with one more",
            "start node 3",
        ),
        (
            HEALTHY._replace(nodes=fenced(3), unreachable={2: "two:9092 (connection refused)"}),
            "critical",
            "2 of 3 voters are down or unreachable: the cluster has no controller",
            "start nodes 2, 3",
        ),
        (
            HEALTHY._replace(partitions=with_partition(partition(-1, (2, 3), ()))),
            "critical",
            "1 partition has no leader, so that nobody can read or write there: orders-0",
            "ottla topics unhealthy",
        ),
        (
            HEALTHY._replace(
                partitions=with_partition(partition(2, (2, 3), (2,))), minimums={"orders": 2}
            ),
            "critical",
            "1 partition refuses writes with acks=all",
            "start the nodes",
        ),
        (
            HEALTHY._replace(partitions=with_partition(partition(2, (2, 3), (2,)))),
            "warning",
            "not in sync: orders-0",
            "wait",
        ),
        (
            HEALTHY._replace(partitions=with_partition(partition(2, (2,)))),
            "warning",
            "1 topic has only one replica",
            "ottla topics reassign orders --replication-factor 3",
        ),
        (
            HEALTHY._replace(minimums={"orders": 2}),
            "warning",
            "stop with one node: orders",
            "ottla configs alter --topic orders --set min.insync.replicas=1",
        ),
        (
            HEALTHY._replace(damage={TopicPartition("orders", 1): [DamagedReplica(2, 5, 7)]}),
            "critical",
            "offsets 5 to 7",
            "damage.md",
        ),
        (
            HEALTHY._replace(directories=[Directory(2, "/data", True, -1, -1)]),
            "critical",
            "/data of node 2 is offline",
            "disk",
        ),
        (
            HEALTHY._replace(directories=[Directory(2, "/data", False, 100 * GIGABYTE, GIGABYTE)]),
            "critical",
            "1 GB of 100 GB left",
            "ottla topics disk",
        ),
        (
            HEALTHY._replace(partitions=lonely(12)),
            "warning",
            "replicas are spread unevenly: node 1 has 12, node 2 has 12, node 3 has 0",
            "ottla rebalance",
        ),
        (HEALTHY._replace(controller_ahead_s=-40.0), "warning", "40 s behind", "time service"),
    ],
)
def test_a_problem_is_named_with_what_repairs_it(
    state: ExaminedCluster, severity: str, problem: str, repair: str
) -> None:
    findings = list(check_cluster(state))
    assert [
        each
        for each in findings
        if each.severity is Severity[severity.upper()]
        and problem in each.problem
        and repair in each.repair
    ], findings


def severities(findings: Iterator[Finding] | list[Finding]) -> list[str]:
    return [finding.severity.name for finding in findings]


def test_space_certificates_and_limits_have_thresholds() -> None:
    assert severities(check_space("/data", 100, 15)) == []
    assert severities(check_space("/data", 100, 14)) == ["WARNING"]
    assert severities(check_space("/data", 100, 4)) == ["CRITICAL"]
    assert severities(check_space("/data", -1, -1)) == []
    for days, expected in ((31, []), (29, ["WARNING"]), (6, ["CRITICAL"]), (-1, ["CRITICAL"])):
        assert severities(check_expiry("it", NOW + dt.timedelta(days), NOW)) == expected
    assert severities(check_files(1024)) == ["WARNING"]
    assert severities(check_files(1 << 20)) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("num.partitions: many\n", "num.partitions"),
        ("listeners: PLAINTEXT://0.0.0.0:9092\n", "open beyond this machine"),
        ("advertised.listeners: PLAINTEXT://nowhere.invalid:9092\n", "nowhere.invalid"),
        ("ssl.keystore.location: missing.pem\n", "missing.pem cannot be used"),
    ],
)
def test_a_wrong_configuration_is_critical(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "broker.yaml"
    path.write_text(text)
    findings, _ = check_config(path, NOW)
    assert [
        each for each in findings if problem in each.problem and each.severity is Severity.CRITICAL
    ], findings


def test_a_data_directory_is_read_without_a_broker(tmp_path: Path) -> None:
    with EmbeddedBroker(data=tmp_path) as broker:
        broker.topic("orders")
        producer = Producer(broker.client_config)
        producer.produce("orders", b"lamp")
        producer.flush()
    (properties,) = tmp_path.rglob("meta.properties")
    data = properties.parent
    found = [each for each in check_data(data, 1, deep=True) if each.subject == "data"]
    assert [each for each in found if "memory" not in each.problem] == []
    assert any("belongs to node" in each.problem for each in check_data(data, 7, deep=False))

    (segment,) = (data / "orders-0").glob("*.log")
    with segment.open("r+b") as file:
        file.seek(70)
        file.write(b"\xff\xff")
    damaged = [each for each in check_data(data, 1, deep=True) if "damaged" in each.problem]
    assert severities(damaged) == ["CRITICAL"]
    assert str(segment) in damaged[0].problem

    shutil.copytree(data / "orders-0", data / f"orders-0.{'0' * 32}-stray")
    assert any("set aside" in each.problem for each in check_data(data, 1, deep=False))


def test_a_running_cluster_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedBroker() as broker:
        broker.topic("orders")
        connection = Connection(bootstrap_server=broker.bootstrap_servers)
        code = doctor(connection=connection, as_json=True)
        answer = json.loads(capsys.readouterr().out)
        # This machine may have a full disk.
        assert {each["subject"] for each in answer["findings"]} <= {"disk"}
        assert answer["healthy"] == (code == 0)

        top(once=True, interval=0.01, connection=connection)
        shown = capsys.readouterr().out
        assert shown.startswith("1 of 1 nodes, 1 topics, 1 partitions, 0 records/s, healthy")
        assert "orders" in shown


def test_a_cluster_that_is_not_there_is_critical(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(connection=Connection(bootstrap_server="localhost:1")) == 1
    assert capsys.readouterr().out.startswith("CRITICAL  cluster: no broker at localhost:1")


def test_top_puts_the_busiest_topic_first_and_fits_80_columns() -> None:
    name = "a-topic-with-a-name-that-is-much-too-long-for-a-terminal"
    topic_partitions = [
        TopicPartition("orders", 0),
        TopicPartition(name, 0),
        TopicPartition("quiet", 0),
    ]
    node = {"node": 1, "address": "one.example.com:9092", "state": "active", "quorum": "leader"}
    node |= {"leaders": 3, "replicas": 3, "out_of_sync": 0}
    group = {"group": "billing", "state": "stable", "members": 2, "lag": 12_345}
    before = Sample(
        10.0,
        [node],
        dict.fromkeys(topic_partitions, 100),
        Counter(),
        Counter(p.topic for p in topic_partitions),
        [],
    )
    ends = {topic_partitions[0]: 300, topic_partitions[1]: 1100, topic_partitions[2]: 100}
    now = before._replace(at_s=12.0, ends=ends, unhealthy=Counter({"quiet": 1}), groups=[group])
    rows = topic_rows(before, now)
    assert [(row["topic"], row["records/s"]) for row in rows] == [
        (name, 500),
        ("orders", 100),
        ("quiet", 0),
    ]
    console = Console(width=80, record=True, file=StringIO())
    console.print(render(before, now, rows=2))
    lines = console.export_text().splitlines()
    assert lines[0].endswith("unhealthy: see ottla doctor")
    assert "and 1 more" in "\n".join(lines)
    assert "12,345" in "\n".join(lines)
    assert max(map(len, lines)) <= 80
