"""Several nodes from one command: `ottla cluster up`, `ottla serve --shards`."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.command import start_ottla
from tests.cluster.processes import wait_until
from tests.ports import ReservedPort, reserve_row

pytestmark = pytest.mark.process

TIMEOUT_S = 240


@pytest.fixture
def ports() -> list[ReservedPort]:
    return reserve_row(3)


@pytest.fixture
def port(ports: list[ReservedPort]) -> int:
    """The first of three free ports in a row."""
    return ports[0].number


@contextmanager
def running(*arguments: str | Path) -> Iterator["subprocess.Popen[bytes]"]:
    process = start_ottla(*arguments)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)


def children(pid: int) -> set[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {int(child) for child in text.split()}


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def brokers(port: int) -> set[int]:
    """The nodes, as reported by one that serves; none until one does."""
    listed = start_ottla("node", "list", "--json", bootstrap=f"localhost:{port}")
    output, _ = listed.communicate(timeout=TIMEOUT_S)
    return {int(number) for number in re.findall(rb'"node": (\d+)', output)}


def read_until(process: "subprocess.Popen[bytes]", text: bytes) -> bytes:
    assert process.stdout is not None
    read = b""
    while text not in read:
        line = process.stdout.readline()
        if not line:
            output, log = process.communicate(timeout=TIMEOUT_S)
            raise AssertionError((read + output + log).decode())
        read += line
    return read


def test_a_cluster_says_where_it_is_and_ends_with_ctrl_c(port: int, tmp_path: Path) -> None:
    with running("cluster", "up", "--port", str(port), "--data", tmp_path / "c") as cluster:
        greeting = read_until(cluster, b"Stop it").decode()
        bootstrap = ",".join(f"localhost:{number}" for number in range(port, port + 3))
        assert f"The cluster is ready: {bootstrap}\n" in greeting
        pids = {int(pid) for pid in re.findall(r"process (\d+)", greeting)}
        assert pids == children(cluster.pid)
        assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [
            "node-1",
            "node-2",
            "node-3",
        ]
        assert brokers(port) == {1, 2, 3}
        cluster.send_signal(signal.SIGINT)
        _, log = cluster.communicate(timeout=TIMEOUT_S)
        assert cluster.returncode == 0, log.decode()
        assert not any(map(is_alive, pids))


def test_a_cluster_whose_command_is_killed_leaves_no_nodes(port: int, tmp_path: Path) -> None:
    arguments = ("--nodes", "2", "--port", str(port), "--data", tmp_path / "c")
    with running("cluster", "up", *arguments) as cluster:
        read_until(cluster, b"Stop it")
        pids = children(cluster.pid)
        assert len(pids) == 2
        cluster.kill()
        wait_until(lambda: not any(map(is_alive, pids)), "the end of the nodes")


def test_shards_are_nodes_of_one_rack_and_come_back(port: int, tmp_path: Path) -> None:
    arguments = ("--id", "4", "--shards", "2", "--port", str(port), "--data", tmp_path / "d")
    with running("serve", *arguments, "--set", "broker.rack=here") as shards:
        wait_until(lambda: brokers(port) == {4, 5}, "two brokers")
        assert (tmp_path / "d" / "shard-1" / "meta.properties").exists()
        before = children(shards.pid)
        killed = max(before)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: len(children(shards.pid) - before) == 1, "a new process")
        wait_until(lambda: brokers(port + 1) == {4, 5}, "two brokers")
        shards.terminate()
        _, log = shards.communicate(timeout=TIMEOUT_S)
        assert shards.returncode == 0, log.decode()


def test_a_cluster_that_lacks_a_node_from_the_start_ends(port: int, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", port + 1)):
        arguments = ("--nodes", "2", "--port", str(port), "--data", tmp_path / "c")
        with running("cluster", "up", *arguments) as cluster:
            output, log = cluster.communicate(timeout=TIMEOUT_S)
    assert cluster.returncode == 1, log.decode()
    assert b"node 2 has ended with exit code 1" in log
    assert b"ready" not in output


def test_an_option_that_is_wrong_ends_the_command(port: int, tmp_path: Path) -> None:
    arguments = ("--port", str(port), "--data", tmp_path / "c", "--set", "no.such.key=1")
    with running("cluster", "up", "--nodes", "1", *arguments) as cluster:
        _, log = cluster.communicate(timeout=TIMEOUT_S)
        assert cluster.returncode == 2
        assert b"no.such.key" in log


def test_shards_without_a_usable_directory_end_with_the_cause(port: int, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    arguments = ("--shards", "2", "--port", str(port), "--data", tmp_path / "file")
    with running("serve", *arguments) as shards:
        _, log = shards.communicate(timeout=TIMEOUT_S)
    assert shards.returncode == 2, log.decode()
    assert log.count(b"ottla: cannot keep data in ") == 2
    assert log.count(b"not a directory") == 2
