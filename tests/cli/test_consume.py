import signal
from collections.abc import Callable, Iterator

import pytest
from tests.cli.command import start_ottla
from tests.cli.conftest import Ottla, Outcome

pytestmark = pytest.mark.process

TOPIC = "cli-consume"


@pytest.fixture(scope="module", autouse=True)
def _topic(bootstrap: str) -> Iterator[None]:
    """Ten records in partition 0, one in partition 1; no test here writes to the topic."""
    for arguments in (
        ("topics", "create", TOPIC, "--partitions", "2"),
        ("produce", TOPIC, *(f"v{number}" for number in range(10)), "--partition", "0"),
        ("produce", TOPIC, "other", "--partition", "1", "--key", "k", "--header", "h=1"),
    ):
        process = start_ottla(*arguments, bootstrap=bootstrap)
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    yield
    start_ottla("topics", "delete", TOPIC, bootstrap=bootstrap).communicate()


@pytest.fixture
def consume(ottla: Ottla, bootstrap: str) -> Callable[..., Outcome]:
    return lambda *arguments: ottla("consume", TOPIC, *arguments, bootstrap=bootstrap)


def test_all_partitions_from_the_beginning(consume: Callable[..., Outcome]) -> None:
    outcome = consume("--from-beginning", "--no-follow")
    assert sorted(outcome.output.split()) == ["other", *(f"v{number}" for number in range(10))]
    assert outcome.exit_code == 0
    assert outcome.errors == ""


def test_one_partition_in_order(consume: Callable[..., Outcome]) -> None:
    outcome = consume("--from-beginning", "--no-follow", "--partition", "0")
    assert outcome.output.split() == [f"v{number}" for number in range(10)]


@pytest.mark.parametrize(("offset", "values"), [("8", "v8 v9"), ("-2", "v8 v9"), ("latest", "")])
def test_from_an_offset(consume: Callable[..., Outcome], offset: str, values: str) -> None:
    outcome = consume("--offset", offset, "--no-follow", "--partition", "0")
    assert " ".join(outcome.output.split()) == values


def test_from_a_time(consume: Callable[..., Outcome]) -> None:
    assert len(consume("--timestamp", "0", "--no-follow").output.split()) == 11
    assert consume("--timestamp", "2999-01-01", "--no-follow").output == ""


def test_a_count_ends_a_consumer_that_follows(consume: Callable[..., Outcome]) -> None:
    outcome = consume("--from-beginning", "--partition", "0", "--count", "3")
    assert outcome == (0, "v0\nv1\nv2\n", "")


def test_a_template(consume: Callable[..., Outcome]) -> None:
    template = "{topic} {partition} {offset} {key} {value} {headers}"
    outcome = consume("--from-beginning", "--no-follow", "--partition", "1", "--format", template)
    assert outcome.output == f"{TOPIC} 1 0 k other h=1\n"


def test_json(consume: Callable[..., Outcome]) -> None:
    document = consume("--from-beginning", "--no-follow", "--partition", "1", "--json").json
    assert (document["key"], document["value"], document["headers"]) == ("k", "other", [["h", "1"]])


def test_a_topic_that_is_not_there(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("consume", "cli-nothing", "--no-follow", bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert outcome.errors.startswith("ottla: cli-nothing: ")


def test_an_offset_that_is_not_there(consume: Callable[..., Outcome]) -> None:
    outcome = consume("--offset", "99", "--partition", "0")
    assert outcome.exit_code == 1
    assert "from 0 to 10" in outcome.errors


def test_a_partition_that_is_not_there(consume: Callable[..., Outcome]) -> None:
    outcome = consume("--partition", "7")
    assert outcome.exit_code == 1
    assert "no partition 7" in outcome.errors


def test_following_until_ctrl_c(bootstrap: str) -> None:
    process = start_ottla("consume", TOPIC, "--offset", "-1", bootstrap=bootstrap)
    assert process.stdout is not None
    lines = {process.stdout.readline(), process.stdout.readline()}
    assert lines == {b"v9\n", b"other\n"}
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert errors == b""
    assert process.returncode in (130, -signal.SIGINT)
