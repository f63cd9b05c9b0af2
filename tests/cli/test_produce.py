import json
import os
import pty
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.command import start_ottla
from tests.cli.conftest import Ottla, Outcome

pytestmark = pytest.mark.process

TOPIC = "cli-produce"

Records = Callable[[], list[dict[str, object]]]


@pytest.fixture(autouse=True)
def topic(ottla: Ottla, bootstrap: str) -> Iterator[str]:
    ottla("topics", "create", TOPIC, "--config", "max.message.bytes=2000", bootstrap=bootstrap)
    yield TOPIC
    ottla("topics", "delete", TOPIC, bootstrap=bootstrap)


@pytest.fixture
def produce(ottla: Ottla, bootstrap: str) -> Callable[..., Outcome]:
    return lambda *arguments, stdin="": ottla(
        "produce", TOPIC, *arguments, stdin=stdin, bootstrap=bootstrap
    )


@pytest.fixture
def records(ottla: Ottla, bootstrap: str) -> Records:
    """Key, value and headers of the topic's records."""

    def read() -> list[dict[str, object]]:
        arguments = ("consume", TOPIC, "--from-beginning", "--no-follow", "--json")
        lines = ottla(*arguments, bootstrap=bootstrap).output.splitlines()
        documents = [json.loads(line) for line in lines]
        return [{key: d[key] for key in ("key", "value", "headers")} for d in documents]

    return read


def test_one_value(produce: Callable[..., Outcome], records: Records) -> None:
    assert produce("hello") == (0, f"wrote 1 record to {TOPIC}, partition 0, offset 0\n", "")
    assert records() == [{"key": None, "value": "hello", "headers": []}]


def test_lines_of_stdin(produce: Callable[..., Outcome], records: Records) -> None:
    outcome = produce("--key-separator", "=", stdin="a=1\nb=2\r\nc==")
    assert outcome == (0, f"wrote 3 records to {TOPIC}\n", "")
    assert [(r["key"], r["value"]) for r in records()] == [("a", "1"), ("b", "2"), ("c", "=")]


def test_key_headers_and_tombstone(produce: Callable[..., Outcome], records: Records) -> None:
    produce("null", "--key", "k", "--header", "a=1", "--header", "a=2", "--null-marker", "null")
    assert records() == [{"key": "k", "value": None, "headers": [["a", "1"], ["a", "2"]]}]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_codecs_and_acks(
    produce: Callable[..., Outcome], ottla: Ottla, bootstrap: str, codec: str, acks: str
) -> None:
    """The reader waits: with acks 0 the record may arrive after the producer has exited."""
    assert produce("x" * 100, "--compression", codec, "--acks", acks).exit_code == 0
    read = ottla("consume", TOPIC, "--from-beginning", "--count", "1", bootstrap=bootstrap)
    assert read.output == "x" * 100 + "\n"


def test_json_tells_the_offsets(produce: Callable[..., Outcome]) -> None:
    assert produce("a", "b", "--json").json == {
        "topic": TOPIC,
        "records": 2,
        "partitions": [{"partition": 0, "first_offset": 0, "last_offset": 1}],
    }


def test_a_line_without_the_separator(produce: Callable[..., Outcome]) -> None:
    outcome = produce("--key-separator", ":", stdin="a:1\nb\n")
    assert outcome.exit_code == 1
    assert outcome.errors == "ottla: record 2 has no key separator ':'\n"


def test_a_record_that_is_too_large(produce: Callable[..., Outcome]) -> None:
    outcome = produce("x" * 3000)
    assert outcome.exit_code == 1
    assert "max.message.bytes" in outcome.errors
    assert outcome.errors.count("\n") == 1


def test_a_partition_that_is_not_there(produce: Callable[..., Outcome]) -> None:
    outcome = produce("x", "--partition", "7")
    assert outcome.exit_code == 1
    assert "partition" in outcome.errors.lower()


def test_no_input_writes_nothing(produce: Callable[..., Outcome]) -> None:
    assert produce() == (0, f"wrote 0 records to {TOPIC}\n", "")


def test_lines_of_a_file(produce: Callable[..., Outcome], records: Records, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"one\ntwo\n")
    assert produce("--file", tmp_path / "lines").exit_code == 0
    assert [record["value"] for record in records()] == ["one", "two"]


def test_a_topic_that_was_created_is_told(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("produce", "cli-produce-new", "hello", bootstrap=bootstrap)
    assert outcome.exit_code == 0
    assert outcome.errors == "created topic cli-produce-new\n"
    outcome = ottla("produce", "cli-produce-new", "hello", bootstrap=bootstrap)
    assert outcome.errors == ""
    ottla("topics", "delete", "cli-produce-new", bootstrap=bootstrap)


def test_a_person_is_asked_before_a_topic_is_created(ottla: Ottla, bootstrap: str) -> None:
    """A name typed at a terminal may be a typo."""
    keyboard, terminal = pty.openpty()
    try:
        typed = ("produce", "cli-produce-typed", "hello")
        with start_ottla(*typed, bootstrap=bootstrap, stdin=terminal) as process:
            _, errors = process.communicate()
        assert process.returncode == 1
        assert b"there is no topic cli-produce-typed; create it with" in errors
        with start_ottla(*typed, "--create", bootstrap=bootstrap, stdin=terminal) as process:
            _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"created topic cli-produce-typed\n")
    finally:
        os.close(keyboard)
        os.close(terminal)
    ottla("topics", "delete", "cli-produce-typed", bootstrap=bootstrap)
