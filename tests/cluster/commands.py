"""The operator of a cluster of processes: the `ottla` command and its output."""

import json
import subprocess
from typing import Any

from tests.cli.command import environment
from tests.cluster.processes import ClusterProcesses
from tests.fork_server import run_forked


def ottla(cluster: ClusterProcesses, *arguments: str) -> "subprocess.CompletedProcess[str]":
    awake = ",".join(cluster.bootstrap_of(node_id) for node_id in cluster.awake)
    return run_forked("ottla", arguments, environment(awake), timeout=300)


def done(cluster: ClusterProcesses, *arguments: str) -> str:
    finished = ottla(cluster, *arguments)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def nodes(cluster: ClusterProcesses) -> dict[int, dict[str, Any]]:
    return {row["node"]: row for row in json.loads(done(cluster, "node", "list", "--json"))}
