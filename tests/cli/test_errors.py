"""Every command reports the true cause of a failure and the remedy, in one line, and soon.

No time is asserted: what a command waits for is bounded by OTTLA_CONNECT_TIMEOUT, and a server that
never answers would hold a command up for ever if anything else decided.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.command import start_ottla
from tests.cli.conftest import Ottla, Outcome
from tests.ports import ReservedPort

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import Connection
from ottla.cli.topic_lookup import create_by_default

CLIENT_COMMANDS = [
    "topics list",
    "topics create orders",
    "topics describe orders",
    "topics alter orders --partitions 2",
    "topics delete orders",
    "topics reassign orders --replicas 1",
    "configs describe --topic orders",
    "configs describe --broker 1",
    "configs describe --all-brokers",
    "configs alter --topic orders --set a=b",
    "configs alter --broker 1 --set num.partitions=1",
    "configs alter --all-brokers --set num.partitions=1",
    "produce orders hello",
    "consume orders",
    "consume orders --group readers",
    "groups list",
    "groups describe readers",
    "groups delete readers",
    "groups reset-offsets readers --topic orders --to-earliest",
    "transactions list",
    "transactions describe payments",
    "transactions hanging",
    "transactions abort payments",
    "node list",
    "node drain 1",
    "node undrain 1",
    "node remove 1",
    "rebalance",
    "reassignments list",
    "reassignments watch",
    "reassignments cancel",
    "topics delete-records orders --before latest",
    "topics elect-leaders",
    "topics unhealthy",
    "topics verify",
    "topics disk",
    "consume orders --tail 3",
    "groups lag",
    "groups lag --watch",
    "cluster status",
    "features list",
    "features upgrade",
    "acls list",
    "acls add --allow-principal alice --producer --topic orders",
    "acls remove --principal alice --topic orders",
    "users list",
    "users remove alice",
    "quotas list",
    "quotas set producer_byte_rate=1 --user alice",
    "quotas remove producer_byte_rate --user alice",
    "tokens list",
    "tokens create",
    "tokens renew abc",
    "tokens expire abc",
    "backup --to copies",
    "restore --from copies",
    "probe --count 1",
    "top",
]


def assert_one_line(outcome: Outcome, exit_code: int) -> None:
    assert outcome.exit_code == exit_code, outcome
    assert outcome.output == ""
    assert outcome.errors.startswith("ottla: ")
    assert outcome.errors.count("\n") == 1


@pytest.mark.parametrize("command", CLIENT_COMMANDS)
def test_no_broker(ottla: Ottla, command: str) -> None:
    address = f"127.0.0.1:{ReservedPort()}"
    outcome = ottla(*command.split(), bootstrap=address)
    assert_one_line(outcome, 3)
    assert outcome.errors == (
        f"ottla: no broker at {address}: connection refused; start one with `ottla serve` "
        "or name another with --bootstrap-server\n"
    )


@pytest.fixture
def silent() -> Iterator[str]:
    """Accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("command", CLIENT_COMMANDS)
def test_a_broker_that_hangs(
    ottla: Ottla, silent: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTTLA_CONNECT_TIMEOUT", "0.1")
    outcome = ottla(*command.split(), bootstrap=silent)
    assert_one_line(outcome, 3)
    assert f"no broker at {silent}: no answer within 0.1 s" in outcome.errors


@contextlib.contextmanager
def answering(data: bytes) -> Iterator[str]:
    """A server that sends everyone the same bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(1)
                        connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak the Kafka protocol"),
        (b"\x15\x03\x01\x00\x02\x02\x16\x00", "does not speak the Kafka protocol"),  # A TLS alert.
        (b"", "does it expect TLS, or another protocol?"),
    ],
)
def test_something_else_than_a_broker(ottla: Ottla, data: bytes, words: str) -> None:
    with answering(data) as address:
        outcome = ottla("topics", "list", bootstrap=address)
    assert_one_line(outcome, 3)
    assert words in outcome.errors or "connection reset by peer" in outcome.errors


def test_each_of_several_brokers_has_its_reason(
    ottla: Ottla, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTTLA_CONNECT_TIMEOUT", "0.1")
    refused = f"127.0.0.1:{ReservedPort()}"
    outcome = ottla("topics", "list", bootstrap=f"{refused},{silent}")
    assert_one_line(outcome, 3)
    assert f"{refused}: connection refused" in outcome.errors
    assert f"{silent}: no answer within 0.1 s" in outcome.errors


def test_a_timeout_that_cannot_be(ottla: Ottla) -> None:
    outcome = ottla("topics", "list", "--connect-timeout", "0")
    assert_one_line(outcome, 2)


@pytest.mark.process
def test_one_broker_that_answers_is_enough(ottla: Ottla, silent: str, bootstrap: str) -> None:
    assert ottla("topics", "list", bootstrap=f"{silent},{bootstrap}").exit_code == 0
    assert ottla("node", "list", bootstrap=f"{silent},{bootstrap}").exit_code == 0


NOT_THERE = [
    ("configs describe --broker 9", "there is no node 9"),
    ("configs alter --broker 9 --set log.cleaner.threads=1", "there is no node 9"),
    ("node drain 9", "there is no node 9"),
    ("node undrain 9", "there is no node 9"),
    ("node remove 9", "there is no node 9"),
    ("node wait 9 --timeout 0", "there is no node 9"),
    ("topics describe nowhere", "`ottla topics list` shows"),
    ("topics alter nowhere --partitions 2", "`ottla topics list` shows"),
    ("topics delete nowhere", "`ottla topics list` shows"),
    ("topics reassign nowhere --replicas 1", "there is no topic nowhere"),
    ("configs describe --topic nowhere", "`ottla topics list` shows"),
    ("configs alter --topic nowhere --set retention.ms=1", "`ottla topics list` shows"),
    ("consume nowhere --no-follow", "`ottla topics list` shows"),
    ("consume nowhere --group readers --no-follow", "`ottla topics list` shows"),
    ("groups describe nobody", "`ottla groups list` shows"),
    ("groups delete nobody", "`ottla groups list` shows"),
    ("groups reset-offsets nobody --topic nowhere --to-latest", "there is no topic nowhere"),
    ("topics delete-records nowhere --before latest", "`ottla topics list` shows"),
    ("topics elect-leaders nowhere", "`ottla topics list` shows"),
    ("consume nowhere --tail 3", "`ottla topics list` shows"),
    ("features upgrade nosuch --level 2", "there is no feature nosuch"),
    ("users remove nobody", "there is no user 'nobody'"),
    ("quotas remove producer_byte_rate --user nobody", "user nobody has no quota"),
    ("restore --from nowhere", "nowhere has no complete backup"),
    ("backup --to /proc/nowhere/x", "/proc/nowhere: no such file or directory"),
    ("table sync nowhere --to delta:table --once", "`ottla topics list` shows"),
    (
        "table sync nowhere --to delta:/proc/nowhere/x --once",
        "cannot keep a table in /proc/nowhere",
    ),
    ("table check delta:nowhere --topic orders", "there is no table delta:"),
    ("transactions describe none", "`ottla transactions list` shows"),
    ("transactions abort none", "`ottla transactions list` shows"),
]


@pytest.mark.process
@pytest.mark.parametrize(("command", "words"), NOT_THERE)
def test_what_is_not_there(
    ottla: Ottla,
    own_broker: BrokerProcess,
    command: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = ottla(*command.split(), bootstrap=own_broker.bootstrap)
    assert_one_line(outcome, 1)
    assert words in outcome.errors


def test_a_cluster_to_move_from_that_is_not_there(ottla: Ottla) -> None:
    outcome = ottla("migrate", "--from", f"127.0.0.1:{ReservedPort()}")
    assert_one_line(outcome, 3)
    assert outcome.errors.endswith(
        "connection refused; start one with `ottla serve` or name another with --from\n"
    )


@pytest.mark.process
def test_a_gateway_says_that_its_brokers_are_not_there() -> None:
    address = f"127.0.0.1:{ReservedPort()}"
    with start_ottla("gateway", "--port", "0", "--bootstrap-server", address) as gateway:
        assert gateway.stderr is not None
        line = next(each for each in gateway.stderr if b"WARNING" in each).decode()
        gateway.terminate()
        gateway.communicate()
    assert f"no broker at {address}: connection refused" in line
    assert line.endswith("requests fail until one answers\n")


@pytest.mark.process
def test_a_single_node_cannot_be_drained(ottla: Ottla, own_broker: BrokerProcess) -> None:
    ottla("topics", "create", "alone", bootstrap=own_broker.bootstrap)
    outcome = ottla("node", "drain", "1", bootstrap=own_broker.bootstrap)
    assert_one_line(outcome, 1)
    assert "there is no other active node to take" in outcome.errors
    assert outcome.errors.endswith("; add a node first\n")


@pytest.fixture(scope="module")
def misadvertised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """It answers on its bootstrap address, and sends clients to an address without a listener."""
    nobody = ReservedPort()
    directory = tmp_path_factory.mktemp("misadvertised")
    with BrokerProcess(directory, "--advertised", f"127.0.0.1:{nobody}") as broker:
        with bootstrap_broker(Connection(f"127.0.0.1:{broker.port}", 240.0)) as call:
            create_by_default(call, "orders")
        yield broker


@pytest.mark.process
@pytest.mark.parametrize(
    "command",
    [
        "topics create others",
        "produce orders hello",
        "consume orders --no-follow",
        "consume orders --group readers --no-follow",
        "groups list",
    ],
)
def test_an_advertised_address_at_which_nobody_answers(
    ottla: Ottla, misadvertised: BrokerProcess, command: str
) -> None:
    outcome = ottla(*command.split(), bootstrap=f"127.0.0.1:{misadvertised.port}")
    assert_one_line(outcome, 3)
    assert "no answer from node 1 at 127.0.0.1:" in outcome.errors
    assert "or correct --advertised" in outcome.errors


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("produce", "orders", "--file", "nowhere"), 1, "cannot read nowhere: no such file"),
        (("produce", "orders", "--file", "."), 1, "cannot read .: is a directory"),
        (("produce", "orders", "hello", "--file", "x"), 2, "give either VALUE or --file"),
        (("dump", "nowhere"), 1, "nowhere"),
        (("metadata", "recover", "--data", "nowhere", "--id", "1"), 1, "nowhere"),
        (("metadata", "recover", "--data", "file", "--id", "1"), 1, "file"),
        (("pipeline", "validate", "nowhere.yaml"), 1, "nowhere.yaml"),
        (("pipeline", "run", "file/x.yaml", "--once"), 1, "file/x.yaml"),
        (("table", "versions", "delta:nowhere"), 1, "nowhere"),
        (("table", "compact", "delta:file"), 1, "file"),
        (("table", "vacuum", "delta:nowhere"), 1, "nowhere"),
        (("table", "at", "delta:nowhere", "--offset", "orders:0:1"), 1, "nowhere"),
    ],
)
def test_a_path_that_cannot_be(
    ottla: Ottla,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    exit_code: int,
    words: str,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    outcome = ottla(*arguments)
    assert_one_line(outcome, exit_code)
    assert words in outcome.errors


@pytest.mark.process
@pytest.mark.parametrize(
    ("directory", "reason"),
    [
        ("file", "not a directory"),
        ("file/inside", "not a directory"),
        ("/proc/nowhere/x", "no such"),
    ],
)
def test_a_node_whose_directory_cannot_be(
    ottla: Ottla,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    directory: str,
    reason: str,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    outcome = ottla("serve", "--port", "0", "--data", directory)
    assert (outcome.exit_code, outcome.output) == (2, "")
    assert "Traceback" not in outcome.errors
    last = outcome.errors.splitlines()[-1]
    assert last.startswith("ottla: cannot keep data in ")
    assert reason in last
    assert last.endswith("choose another directory with --data")


@pytest.mark.process
def test_a_node_to_join_that_is_not_there(
    ottla: Ottla, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTTLA_QUORUM_JOIN_TIMEOUT_MS", raising=False)
    join = ("--join", f"127.0.0.1:{ReservedPort()}", "--set", "quorum.join.timeout.ms=0")
    outcome = ottla("serve", "--port", "0", "--id", "2", "--data", tmp_path / "d", *join)
    assert outcome.exit_code == 1
    assert "cannot join a cluster" in outcome.errors
    assert "Traceback" not in outcome.errors
    assert not (tmp_path / "d" / "meta.properties").exists()
