"""The fixtures, as used by an application's tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ports import ReservedPort

from ottla.testing import EmbeddedBroker

SIMPLE = """
    from confluent_kafka import Producer

    def test_one(ottla_broker):
        producer = Producer(ottla_broker.client_config)
        topic = ottla_broker.topic("orders")
        producer.produce(topic, b"lamp", key=b"anna")
        producer.flush()
        (message,) = ottla_broker.wait_for(topic, 1)
        assert message.value == b"lamp" and message["key"] == b"anna"

    def test_other_has_its_own_topics(ottla_broker):
        assert ottla_broker.records(ottla_broker.topic("orders")) == []
"""


class Project:
    """Tests of a user who has installed the package."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")

    def write(self, name: str, text: str) -> None:
        lines = text.strip("\n").splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip())
        content = "\n".join(line[indent:] for line in lines)
        (self._directory / name).write_text(content + "\n")

    def run(self, *arguments: str, passed: int | None = None, **variables: str) -> str:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")
        }
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": _source()}
        command = [sys.executable, "-m", "pytest", "-p", "ottla.testing.plugin", "-q"]
        done = subprocess.run(
            [*command, *arguments],
            cwd=self._directory,
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) == (passed is not None), done.stdout
        assert passed is None or f"{passed} passed" in done.stdout, done.stdout
        return done.stdout


def _source() -> str:
    import ottla

    return str(Path(ottla.__file__).parents[1])


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_broker_for_all_tests_with_topics_for_each(project: Project) -> None:
    project.write("test_orders.py", SIMPLE)
    project.run(passed=2)


def test_one_broker_for_each_worker_of_xdist(project: Project) -> None:
    project.write(
        "test_orders.py",
        """
        import pathlib, pytest

        @pytest.mark.parametrize("number", range(8))
        def test_one(ottla_broker, number):
            topic = ottla_broker.topic("orders")
            assert ottla_broker.records(topic) == []
            with pathlib.Path("servers").open("a") as file:
                file.write(ottla_broker.bootstrap_servers + "\\n")
        """,
    )
    project.run("-p", "xdist", "-n", "2", passed=8)
    servers = (project._directory / "servers").read_text().split()
    assert len(servers) == 8
    assert len(set(servers)) <= 2


SHOWS_SETTINGS = """
    def test_settings(ottla_broker, capsys):
        topic = ottla_broker.bootstrap_servers
        node = ottla_broker._node(1)
        with capsys.disabled():
            print("partitions", node.node._values[NUM_PARTITIONS], "memory", node.has_memory_disk)

    from ottla.controller.config import NUM_PARTITIONS
"""


def test_settings_by_flag_environment_and_file(project: Project) -> None:
    project.write("test_settings.py", SHOWS_SETTINGS)
    assert "partitions 1 memory True" in project.run(passed=1)
    project.write(
        "pytest.ini", "[pytest]\nottla_storage = directory\nottla_config = num.partitions=2\n"
    )
    assert "partitions 2 memory False" in project.run(passed=1)
    by_variable = {"OTTLA_TEST_CONFIG": "num.partitions=3,auto.create.topics.enable=false"}
    assert "partitions 3 memory False" in project.run(passed=1, **by_variable)
    flags = ("--ottla-config=num.partitions=4", "--ottla-storage=memory")
    assert "partitions 4 memory True" in project.run(*flags, passed=1, **by_variable)


def test_a_port_can_be_chosen(project: Project) -> None:
    port = ReservedPort()
    project.write(
        "test_port.py",
        f"""
        def test_port(ottla_broker):
            assert ottla_broker.bootstrap_servers == "127.0.0.1:{port}"
        """,
    )
    project.run(f"--ottla-port={port}", passed=1)


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("--ottla-storage=tape", "ottla_storage is 'tape'; it must be memory or directory"),
        ("--ottla-port=high", "ottla_port is 'high'; it must be from 0 to 65535"),
        ("--ottla-config=many", "ottla_config is 'many'; it must be KEY=VALUE,KEY=VALUE"),
        ("--ottla-config=num.partition=1", "num.partition"),
    ],
)
def test_wrong_settings_are_explained(project: Project, flag: str, problem: str) -> None:
    project.write("test_orders.py", SIMPLE)
    assert problem in project.run(flag)


def test_a_broker_that_runs_already(project: Project) -> None:
    project.write("test_orders.py", SIMPLE.replace("ottla_broker", "ottla_noproc"))
    assert "set OTTLA_BOOTSTRAP_SERVERS" in project.run()
    with EmbeddedBroker() as broker:
        project.run(passed=2, OTTLA_BOOTSTRAP_SERVERS=broker.bootstrap_servers)
        project.run(f"--ottla-bootstrap-servers={broker.bootstrap_servers}", passed=2)


def test_what_a_test_does_to_the_broker_is_undone(project: Project) -> None:
    project.write(
        "test_faults.py",
        """
        def test_breaks_everything(ottla_broker):
            ottla_broker.faults.fill_disk()
            ottla_broker.faults.fail_next("Metadata", "UNKNOWN_SERVER_ERROR", count=1000)
            ottla_broker.kill_node()

        def test_finds_a_broker_that_works(ottla_broker):
            assert ottla_broker.records(ottla_broker.topic("orders")) == []
        """,
    )
    project.run(passed=2)


def test_a_cluster(project: Project) -> None:
    project.write(
        "test_cluster.py",
        """
        def test_three_nodes(ottla_cluster):
            cluster = ottla_cluster(nodes=3, config={"num.partitions": 2})
            topic = cluster.topic("orders", replication_factor=3)
            cluster.kill_node(2)
            assert cluster.records(topic) == []
        """,
    )
    project.run(passed=1)


def test_a_gateway(project: Project) -> None:
    project.write(
        "test_gateway.py",
        """
        import urllib.request

        def test_answers(ottla_gateway):
            with urllib.request.urlopen(ottla_gateway.url + "/health") as answer:
                assert answer.status == 200
        """,
    )
    project.run(passed=1)
