from collections.abc import Callable, Iterator

import pytest
from tests.cli.command import start_ottla
from tests.cli.conftest import Ottla, Outcome

pytestmark = pytest.mark.process

TOPIC, GROUP = "cli-reset", "cli-resetters"


@pytest.fixture(autouse=True)
def _group_at_3(ottla: Ottla, bootstrap: str) -> Iterator[None]:
    """Five records in partition 0, of which the group has committed three."""
    ottla("topics", "create", TOPIC, "--partitions", "2", bootstrap=bootstrap)
    ottla("produce", TOPIC, "a", "b", "c", "d", "e", "--partition", "0", bootstrap=bootstrap)
    consume = ("consume", TOPIC, "--group", GROUP, "--from-beginning", "--count", "3")
    assert ottla(*consume, bootstrap=bootstrap).output == "a\nb\nc\n"
    yield
    ottla("groups", "delete", GROUP, bootstrap=bootstrap)
    ottla("topics", "delete", TOPIC, bootstrap=bootstrap)


@pytest.fixture
def reset(ottla: Ottla, bootstrap: str) -> Callable[..., Outcome]:
    return lambda *arguments: ottla(
        "groups", "reset-offsets", GROUP, *arguments, bootstrap=bootstrap
    )


@pytest.fixture
def committed(ottla: Ottla, bootstrap: str) -> Callable[[], dict[int, int]]:
    def committed() -> dict[int, int]:
        described = ottla("groups", "describe", GROUP, "--json", bootstrap=bootstrap).json
        return {
            row["partition"]: row["committed_offset"]
            for row in described["partitions"]
            if row["committed_offset"] is not None
        }

    return committed


@pytest.mark.parametrize(
    ("options", "offset"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 5),
        (("--to-offset", "4"), 4),
        (("--to-offset", "99"), 5),
        (("--shift-by", "-2"), 1),
        (("--shift-by", "1"), 4),
        (("--shift-by", "-99"), 0),
        (("--to-timestamp", "2020-01-01T00:00:00Z"), 0),
        (("--to-timestamp", "2100-01-01T00:00:00Z"), 5),
    ],
)
def test_where_to(
    reset: Callable[..., Outcome],
    committed: Callable[[], dict[int, int]],
    options: tuple[str, ...],
    offset: int,
) -> None:
    [row] = [row for row in reset(*options, "--json").json["partitions"] if row["partition"] == 0]
    assert (row["committed_offset"], row["new_offset"]) == (3, offset)
    assert row["new_lag"] == 5 - offset
    assert committed()[0] == offset


def test_a_dry_run_shows_the_plan_and_changes_nothing(
    reset: Callable[..., Outcome], committed: Callable[[], dict[int, int]]
) -> None:
    outcome = reset("--to-earliest", "--dry-run")
    lines = outcome.output.splitlines()
    assert "COMMITTED OFFSET  NEW OFFSET  END OFFSET  NEW LAG" in lines[0]
    assert lines[1].split() == [TOPIC, "0", "3", "0", "5", "5"]
    assert "nothing was changed" in lines[-1]
    assert committed()[0] == 3


def test_one_partition_of_one_topic(
    reset: Callable[..., Outcome], committed: Callable[[], dict[int, int]]
) -> None:
    reset("--topic", TOPIC, "--partition", "1", "--to-latest")
    assert committed()[0] == 3
    reset("--topic", TOPIC, "--partition", "0", "--to-latest")
    assert committed()[0] == 5


def test_a_group_with_members_is_refused(
    reset: Callable[..., Outcome], bootstrap: str, committed: Callable[[], dict[int, int]]
) -> None:
    process = start_ottla("consume", TOPIC, "--group", GROUP, bootstrap=bootstrap)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"d\n"
        outcome = reset("--to-earliest")
        assert outcome.exit_code == 1
        assert "stop them first" in outcome.errors
    finally:
        process.terminate()
        process.communicate()


def test_a_new_group_can_be_given_offsets(ottla: Ottla, bootstrap: str) -> None:
    name = "cli-new-resetters"
    arguments = ("--topic", TOPIC, "--partition", "0", "--to-offset", "4")
    ottla("groups", "reset-offsets", name, *arguments, bootstrap=bootstrap)
    consume = ("consume", TOPIC, "--group", name, "--no-follow")
    assert ottla(*consume, bootstrap=bootstrap).output == "e\n"
    ottla("groups", "delete", name, bootstrap=bootstrap)


@pytest.mark.parametrize(
    ("options", "exit_code", "message"),
    [
        ((), 2, "give one of"),
        (("--to-earliest", "--to-latest"), 2, "give one of"),
        (("--to-offset", "-1"), 2, "less than 0"),
        (("--partition", "0", "--to-latest"), 2, "exactly one --topic"),
        (("--topic", "cli-missing", "--to-latest"), 1, "no topic cli-missing"),
        (("--topic", TOPIC, "--partition", "7", "--to-latest"), 1, "no partition 7"),
        (("--to-timestamp", "soon"), 2, "ISO 8601"),
    ],
)
def test_what_makes_no_sense_is_refused(
    reset: Callable[..., Outcome], options: tuple[str, ...], exit_code: int, message: str
) -> None:
    outcome = reset(*options)
    assert outcome.exit_code == exit_code
    assert message in outcome.errors


def test_nobody_committed_anything(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("groups", "reset-offsets", "cli-nobody", "--to-latest", bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert "name a --topic" in outcome.errors
