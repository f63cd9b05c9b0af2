"""Commands report the cause, without a traceback, when two of three nodes are dead."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cli.command import environment
from tests.cluster.clients import create_topic
from tests.cluster.commands import ottla
from tests.cluster.processes import ClusterProcesses, wait_until
from tests.fork_server import run_forked

from ottla.cli.errors import ExitCode
from ottla.cli.examples import EXAMPLES

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("lost majority")]

# They work on files, Spark, or nodes that they start themselves.
OTHERS = (
    "serve",
    "gateway",
    "dump",
    "completion",
    "cluster up",
    "metadata",
    "pipeline",
    "table",
    "demo",
    "profile",
    "secure",
    "doctor",
    "service",
)
COMMANDS = sorted(name for name in EXAMPLES if not name.startswith(OTHERS))
# The remaining node knows the answer.
ANSWERED = {
    "features list",
    "features upgrade",
    "topics list",
    "configs describe",
    "users list",
    "quotas list",
}
NO_AUTHORIZER = "No Authorizer is configured"
NO_BACKUP = "has no complete backup"
NO_LOGIN = "tokens need a login"
OTHER_CAUSES = {
    "acls add": NO_AUTHORIZER,
    "acls list": NO_AUTHORIZER,
    "acls remove": NO_AUTHORIZER,
    "backup list": NO_BACKUP,
    "backup prune": NO_BACKUP,
    "backup verify": NO_BACKUP,
    "migrate": "no broker at kafka.example.com:9092",
    "node drain": "there is no other active node to take orders-0",
    "quotas remove": "user alice has no quota producer_byte_rate",
    "restore": NO_BACKUP,
    "tokens create": NO_LOGIN,
    "tokens expire": NO_LOGIN,
    "tokens list": NO_LOGIN,
    "tokens renew": NO_LOGIN,
    "users add": "alice.secret: no such file or directory",
    "users remove": "there is no user 'alice'\n",
}
NO_MAJORITY = "2 of 3 nodes are down or unreachable"
# The group has offsets in each partition, so describing it takes nodes that are dead.
SETUP = (
    "produce orders lamp",
    "consume orders --group billing --no-follow",
    "groups reset-offsets billing --topic orders --to-earliest",
)
AT_ONCE = 12  # Most of them wait for nodes that do not answer.

Ended = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The remaining node's address. One of the others was fenced before, the other cannot be."""
    with ClusterProcesses(tmp_path_factory.mktemp("majority")) as cluster:
        cluster.wait_for_voters(1, 2, 3)
        create_topic(cluster, "orders", 3)
        for words in SETUP:
            wait_until(lambda: ottla(cluster, *words.split()).returncode == 0, words)  # noqa: B023
        remaining = cluster.leader()
        first, second = sorted(set(cluster.ids) - {remaining})
        cluster.kill(first)
        wait_until(lambda: f"node {first} is fenced" in cluster.log_text(), "fencing")
        cluster.kill(second)
        address = cluster.bootstrap_of(remaining)
        wait_until(lambda: NO_MAJORITY in run(address, ["cluster", "status"]).stderr, "resignation")
        yield address


def words_of(name: str, directory: Path) -> list[str]:
    """The example from the help, without shell operators, and with backups in a directory."""
    words = shlex.split(EXAMPLES[name].replace("/var/backups", str(directory)))[1:]
    end = next((index for index, word in enumerate(words) if word in ("||", ">")), len(words))
    return ["1" if word == "60" else word for word in words[:end] if word != "--watch"]


@pytest.fixture(scope="module")
def ends(left: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Ended]]]:
    """How each command ends."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            name: pool.submit(run, left, words_of(name, tmp_path_factory.mktemp("command")))
            for name in COMMANDS
        }


def run(address: str, words: list[str]) -> Ended:
    values = environment(address) | {"OTTLA_CONNECT_TIMEOUT": "30"}
    return run_forked("ottla", words, values, timeout=300)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_names_the_nodes_that_are_missing(
    ends: dict[str, Future[Ended]], name: str
) -> None:
    ended = ends[name].result()
    assert "Traceback" not in ended.stderr
    if name in ANSWERED:
        assert ended.returncode == 0, ended.stderr
    else:
        assert OTHER_CAUSES.get(name, NO_MAJORITY) in ended.stderr
        assert ended.returncode != 0


def test_the_doctor_says_that_nothing_can_change(left: str) -> None:
    ended = run(left, ["doctor", "--json"])
    assert ended.returncode == 1, ended.stderr
    (found,) = (
        each for each in json.loads(ended.stdout)["findings"] if each["subject"] == "quorum"
    )
    assert found["severity"] == "critical"
    assert "cannot change" in found["problem"]
    assert "start nodes" in found["repair"]


def test_voters_count_and_not_nodes(tmp_path: Path) -> None:
    with ClusterProcesses(tmp_path, 3, "--set", "quorum.size=1") as cluster:
        cluster.wait_for_voters(1)
        create_topic(cluster, "orders", 3)
        cluster.kill(1)
        ended = ottla(cluster, "topics", "unhealthy")
        assert "1 of 3 nodes are down or unreachable" in ended.stderr
        assert "there is no controller" in ended.stderr
        assert ended.returncode == ExitCode.UNREACHABLE
