import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.command import environment, start_ottla
from tests.cli.conftest import Ottla

from ottla.records.builder import Record, build_batch


def test_help_lists_every_command(ottla: Ottla) -> None:
    outcome = ottla("--help")
    assert outcome.exit_code == 0
    for command in ("serve", "topics", "configs", "groups", "produce", "consume", "dump"):
        assert f"{command}: " in outcome.output


def test_version(ottla: Ottla) -> None:
    assert ottla("--version").output == "0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nope",), "nope"),
        (("topics", "creat"), 'Did you mean "create"?'),
        (("topics", "list", "--nope"), "--nope"),
        (("topics", "create"), "topic"),
        (("topics", "create", "orders", "--partitions", "many"), "--partitions"),
        (("topics", "create", "orders", "--partitions", "0"), "--partitions 0"),
        (("topics", "create", "orders", "--config", "retention"), "key=value"),
        (("topics", "list", "--bootstrap-server", "host:port"), "HOST:PORT"),
        (("configs", "describe"), "give one of --topic NAME, --group ID, --broker ID"),
        (("configs", "describe", "--topic", "a", "--broker", "1"), "give one of"),
        (("configs", "alter", "--topic", "orders"), "nothing to change"),
        (("produce", "orders", "a", "--key", "k", "--key-separator", ":"), "either --key or"),
        (("produce", "orders", "a", "--idempotent", "--acks", "1"), "--acks all"),
        (("produce", "orders", "a", "--acks", "2"), "--acks"),
        (("produce", "orders", "a", "--header", "x"), "key=value"),
        (("consume", "orders", "--count", "0"), "--count 0"),
        (("consume", "orders", "--offset", "x"), "--offset"),
        (("consume", "orders", "--offset", "1", "--from-beginning"), "only one of"),
        (("consume", "orders", "--timestamp", "soon"), "ISO 8601"),
        (("consume", "orders", "--format", "{nope}"), "{nope}"),
        (("serve", "--port", "70000"), "--port 70000"),
        (("serve", "--set", "x"), "key=value"),
        (("serve", "--config", "/nonexistent.yaml"), "/nonexistent.yaml"),
        (("serve", "--port", "1", "--listener", "A://localhost:1"), "leave out"),
        (("dump", "README.md"), ".log"),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_2(
    ottla: Ottla, arguments: tuple[str, ...], words: str
) -> None:
    outcome = ottla(*arguments)
    assert outcome.exit_code == 2
    assert outcome.output == ""
    assert outcome.errors.startswith("ottla: ")
    assert outcome.errors.count("\n") == 1
    assert words.lower() in outcome.errors.lower()


def test_an_address_that_does_not_resolve_is_exit_code_3(ottla: Ottla) -> None:
    outcome = ottla("topics", "list", "-b", "broker.invalid:9092")
    assert outcome.exit_code == 3
    assert "broker.invalid:9092" in outcome.errors


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    """`head` exits once it has enough; that is not an error."""
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(build_batch([Record(value=b"hello")]))
    process = start_ottla("dump", segment)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait() == 141
    process.stderr.close()


def test_an_interrupt_ends_quietly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = start_ottla("topics", "list", bootstrap=f"127.0.0.1:{silent.getsockname()[1]}")
        with silent.accept()[0]:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate()
    assert errors == b""
    assert process.returncode in (130, -signal.SIGINT)


def test_serving_loads_neither_the_client_nor_the_table_library() -> None:
    script = (
        "import sys; from ottla.cli.main import app; app.parse_args(['serve', '--port', '0']);"
        "print([name for name in ('rich', 'confluent_kafka') if name in sys.modules])"
    )
    output = subprocess.check_output([sys.executable, "-c", script], env=environment(), text=True)
    assert output == "[]\n"


def test_a_continuation_of_help_does_not_look_like_an_option() -> None:
    lines = subprocess.check_output(
        [sys.executable, "-m", "ottla", "serve", "--help"],
        env=environment() | {"COLUMNS": "80"},
        text=True,
    ).splitlines()
    assert max(map(len, lines)) <= 80
    first = lines.index("Parameters:") + 1
    options = lines[first : lines.index("", first)]
    assert all(line.startswith(("  --", "        ")) for line in options)
    assert "[default: 9092]" in "".join(lines)
    assert lines[-1].startswith("Example: ottla serve")
