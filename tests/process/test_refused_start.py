"""A broker that cannot start says why in one line, and exits with the right code."""

import os
import socket
from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.command import environment
from tests.clients.requests import metadata
from tests.clients.wire import Wire
from tests.fork_server import run_forked
from tests.ports import ReservedPort

TIMEOUT_S = 90
FAILED, USAGE = 1, 2


def refusal(*arguments: str | Path) -> tuple[int, str]:
    """The exit code and the single line for the operator."""
    words = ["serve", *map(str, arguments)]
    ended = run_forked("ottla", words, environment(), timeout=TIMEOUT_S)
    lines = [line for line in ended.stderr.splitlines() if line.startswith("ottla: ")]
    assert len(lines) == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.returncode, lines[0]


def test_a_second_process_on_the_same_directory(running: BrokerProcess) -> None:
    code, line = refusal("--data", running.data, "--port", "0")
    assert code == FAILED
    assert f"{running.data} is in use by another process" in line
    with Wire(running.bootstrap) as wire:
        assert wire.call(metadata()).brokers


def test_a_port_in_use(running: BrokerProcess, tmp_path: Path) -> None:
    code, line = refusal("--data", tmp_path / "other", "--port", str(running.port))
    assert code == FAILED
    assert f"port {running.port} is in use" in line


def test_an_http_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, line = refusal("--data", tmp_path / "data", "--port", "0", "--http", str(port))
    assert code == FAILED
    assert f"127.0.0.1:{port}: port {port} is in use by another process" in line
    assert "another port with --http" in line
    assert not (tmp_path / "data").exists()


def test_an_http_port_that_is_the_broker_s_own(tmp_path: Path) -> None:
    port = ReservedPort()
    code, line = refusal("--data", tmp_path / "data", "--port", str(port), "--http", str(port))
    assert code == FAILED
    assert f"port {port} is in use" in line


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--http", "0.0.0.0:0"), "--insecure"),
        (
            ("--http", "0", "--http-config", "/nowhere/at-all.properties"),
            "--http-config /nowhere/at-all",
        ),
    ],
)
def test_a_gateway_that_could_not_start(
    tmp_path: Path, arguments: tuple[str, ...], part: str
) -> None:
    code, line = refusal("--data", tmp_path / "data", "--port", "0", *arguments)
    assert code == USAGE
    assert part in line
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("arguments", [("--host", "0.0.0.0"), ("--listener", "PLAINTEXT://:0")])
@pytest.mark.parametrize("more", [(), ("--shards", "2")])
def test_a_listener_without_a_lock_beyond_this_machine(
    tmp_path: Path, arguments: tuple[str, ...], more: tuple[str, ...]
) -> None:
    code, line = refusal("--data", tmp_path / "data", *arguments, "--new-cluster", *more)
    assert code == USAGE
    assert "is open beyond this machine" in line
    assert "ottla secure init" in line
    assert "--insecure" in line
    assert not (tmp_path / "data").exists()


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    code, line = refusal(
        *("--data", tmp_path / "data", "--host", "192.0.2.1", "--port", "0"),
        *("--new-cluster", "--insecure"),
    )
    assert code == FAILED
    assert "192.0.2.1 is not an address of this machine" in line


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--set", "log.retntion.ms=5"), "log.retention.ms"),
        (("--set", "num.partitions=many"), "num.partitions"),
        (("--set", "nonsense"), "nonsense"),
        (("--port", "99999"), "99999"),
        (("--listener", "localhost:9092"), "localhost:9092"),
        (("--listener", "A://:0", "--listener", "A://:0"), "two listeners"),
        (("--config", "/nowhere/at-all.yaml"), "/nowhere/at-all.yaml"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_a_bad_configuration(tmp_path: Path, arguments: tuple[str, ...], part: str) -> None:
    code, line = refusal("--data", tmp_path / "data", *arguments)
    assert code == USAGE
    assert part in line
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"log.retention.ms: [", "is not YAML"),
        (b"log:\n  retention.ms: 5\n", "log.retention.ms"),
        (b"\xff\xfe\x00bad", "is not UTF-8 text"),
    ],
)
def test_a_bad_configuration_file(tmp_path: Path, content: bytes, part: str) -> None:
    file = tmp_path / "broker.yaml"
    file.write_bytes(content)
    code, line = refusal("--data", tmp_path / "data", "--config", file)
    assert code == USAGE
    assert part in line


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    code, line = refusal("--data", tmp_path / "data", "--port", "0")
    assert code == USAGE
    assert str(tmp_path / "data") in line
    assert "exists" in line.lower() or "not a directory" in line.lower()


def test_a_directory_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    code, line = refusal("--data", tmp_path / "file" / "data", "--port", "0")
    assert code == USAGE
    assert str(tmp_path / "file" / "data") in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)
    code, line = refusal("--data", tmp_path / "data", "--port", "0")
    assert code == USAGE
    assert "permission denied" in line.lower()


@pytest.mark.parametrize("content", ["", "version=7\ncluster.id=a\nnode.id=1\n", "\0\0\0\0"])
def test_a_corrupt_identity(tmp_path: Path, content: str) -> None:
    """Guessing whose data it is could mix two clusters."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text(content)
    code, line = refusal("--data", data, "--port", "0")
    assert code == FAILED
    assert "meta.properties" in line
    assert (data / "meta.properties").read_text() == content


def test_the_data_of_another_node(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "--id", "4"):
        pass
    code, line = refusal("--data", tmp_path / "data", "--port", "0", "--id", "5")
    assert code == FAILED
    assert "belongs to node 4" in line


def test_a_refused_start_leaves_the_port_free(tmp_path: Path) -> None:
    port = ReservedPort()
    with socket.create_server(("127.0.0.1", port.number)):
        assert refusal("--data", tmp_path / "data", "--port", str(port))[0] == FAILED
    with BrokerProcess(tmp_path, port=port) as broker, Wire(broker.bootstrap) as wire:
        assert wire.call(metadata()).brokers
