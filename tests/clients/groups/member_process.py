"""A group member in its own process, so that it can be killed; prints what it is assigned.

python -m tests.clients.groups.member_process <client> <bootstrap> <group> <topic>

Its session timeout is short. With KIP-848 the client cannot choose it.
"""

import subprocess
import sys

from tests.clients.groups.members import POLLERS
from tests.fork_server import REPOSITORY

SESSION_TIMEOUT_MS = 3_000
SHORT_SESSION: dict[str, dict[str, int]] = {
    "confluent": {"session.timeout.ms": SESSION_TIMEOUT_MS},
    "confluent-consumer-protocol": {},
    "kafka-python": {"session_timeout_ms": SESSION_TIMEOUT_MS},
    "aiokafka": {"session_timeout_ms": SESSION_TIMEOUT_MS},
}


def start_member(client: str, bootstrap: str, group: str, topic: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.clients.groups.member_process"]
    return subprocess.Popen(
        [*command, client, bootstrap, group, topic], stdout=subprocess.PIPE, cwd=REPOSITORY
    )


def main(client: str, bootstrap: str, group: str, topic: str) -> None:
    poller = POLLERS[client](bootstrap, group, topic, **SHORT_SESSION[client])
    while True:
        poller.poll()
        if assigned := poller.assignment():
            sys.stdout.write(f"{sorted(assigned)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
