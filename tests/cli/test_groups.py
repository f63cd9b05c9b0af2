from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import ShareConsumer
from tests.cli.command import start_ottla
from tests.cli.conftest import Ottla, Outcome

pytestmark = pytest.mark.process

TOPIC, GROUP = "cli-groups", "cli-readers"


@pytest.fixture(autouse=True)
def _topic(ottla: Ottla, bootstrap: str) -> Iterator[None]:
    """Three records in one partition; no group has read them."""
    ottla("topics", "create", TOPIC, bootstrap=bootstrap)
    ottla("produce", TOPIC, "a", "b", "c", bootstrap=bootstrap)
    yield
    ottla("groups", "delete", GROUP, bootstrap=bootstrap)
    ottla("topics", "delete", TOPIC, bootstrap=bootstrap)


@pytest.fixture
def consume(ottla: Ottla, bootstrap: str) -> Callable[..., Outcome]:
    options = ("--group", GROUP, "--from-beginning")
    return lambda *arguments: ottla("consume", TOPIC, *options, *arguments, bootstrap=bootstrap)


def test_a_group_goes_on_where_it_was(consume: Callable[..., Outcome]) -> None:
    assert consume("--count", "2") == (0, "a\nb\n", "")
    assert consume("--no-follow") == (0, "c\n", "")
    assert consume("--no-follow") == (0, "", "")


def test_list_and_describe(consume: Callable[..., Outcome], ottla: Ottla, bootstrap: str) -> None:
    consume("--count", "2")
    rows = ottla("groups", "list", "--json", bootstrap=bootstrap).json
    assert {"group": GROUP, "protocol": "classic", "state": "empty"} in rows
    lines = ottla("groups", "describe", GROUP, bootstrap=bootstrap).output.splitlines()
    assert lines[0] == f"{GROUP}  protocol classic  state empty"
    assert lines[2].split() == [TOPIC, "0", "2", "3", "1", "-", "-"]


def test_list_some(consume: Callable[..., Outcome], ottla: Ottla, bootstrap: str) -> None:
    consume("--count", "2")

    def names(*filters: str) -> list[str]:
        rows = ottla("groups", "list", "--json", *filters, bootstrap=bootstrap).json
        return [row["group"] for row in rows]

    assert GROUP in names("--state", "empty", "--state", "preparing_rebalance")
    assert GROUP not in names("--state", "stable")
    assert GROUP in names("--protocol", "classic")
    assert GROUP not in names("--protocol", "consumer", "--protocol", "share")
    assert ottla("groups", "list", "--protocol", "x", bootstrap=bootstrap).exit_code == 2


def test_a_group_with_a_member(ottla: Ottla, bootstrap: str) -> None:
    process = start_ottla(
        "consume", TOPIC, "--group", GROUP, "--from-beginning", bootstrap=bootstrap
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(3)] == [b"a\n", b"b\n", b"c\n"]
    described = ottla("groups", "describe", GROUP, "--json", bootstrap=bootstrap).json
    assert described["state"] == "stable"
    assert described["partitions"][0]["client_id"] == "ottla-cli"
    [member] = described["members"]
    assert (member["client_id"], member["partitions_count"]) == ("ottla-cli", 1)
    lines = ottla("groups", "describe", GROUP, bootstrap=bootstrap).output.splitlines()
    assert lines[-2].split()[:2] == ["MEMBER", "ID"]
    assert lines[-1].split()[0] == member["member_id"]
    refused = ottla("groups", "delete", GROUP, bootstrap=bootstrap)
    assert refused.exit_code == 1
    assert "stop its members" in refused.errors
    process.terminate()
    process.communicate()
    left = ottla("groups", "describe", GROUP, "--json", bootstrap=bootstrap).json
    assert (left["state"], left["members"]) == ("empty", [])


def test_delete(consume: Callable[..., Outcome], ottla: Ottla, bootstrap: str) -> None:
    consume("--no-follow")
    deleted = ottla("groups", "delete", GROUP, bootstrap=bootstrap)
    assert deleted == (0, f"deleted group {GROUP}\n", "")
    assert consume("--no-follow").output == "a\nb\nc\n"


def test_what_is_not_there(ottla: Ottla, bootstrap: str) -> None:
    for command in ("describe", "delete"):
        outcome = ottla("groups", command, "cli-nobody", bootstrap=bootstrap)
        assert outcome.exit_code == 1
        assert "`ottla groups list` shows the groups" in outcome.errors


def test_a_group_and_offsets_of_ones_own(consume: Callable[..., Outcome]) -> None:
    outcome = consume("--partition", "0")
    assert outcome.exit_code == 2
    assert "group" in outcome.errors


@pytest.fixture
def share_group(bootstrap: str) -> Iterator[ShareConsumer]:
    """A group at the end of the topic, with one member."""
    consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    consumer.subscribe([TOPIC])
    yield consumer
    consumer.close()


def test_a_share_group(share_group: ShareConsumer, ottla: Ottla, bootstrap: str) -> None:
    def groups(command: str, *arguments: str) -> Outcome:
        return ottla("groups", command, *arguments, bootstrap=bootstrap)

    offsets: list[int | None] = []
    while offsets != [3]:
        list(share_group.poll(0.1))
        outcome = groups("describe", GROUP, "--json")
        partitions = outcome.json["partitions"] if outcome.exit_code == 0 else ()
        offsets = [row["start_offset"] for row in partitions]
    described = groups("describe", GROUP, "--json").json
    assert (described["protocol"], described["state"]) == ("share", "stable")
    assert [member["partitions_count"] for member in described["members"]] == [1]
    assert {"group": GROUP, "protocol": "share", "state": "stable"} in groups(
        "list", "--protocol", "share", "--json"
    ).json
    refused = groups("reset-offsets", GROUP, "--to-earliest")
    assert refused.exit_code == 1
    assert "stop them first" in refused.errors

    share_group.close()

    assert groups("reset-offsets", GROUP, "--to-offset", "1").exit_code == 0
    lines = groups("describe", GROUP).output.splitlines()
    assert lines[0] == f"{GROUP}  protocol share  state empty"
    assert lines[2].split() == [TOPIC, "0", "1", "3", "2", "0"]
