"""A member of a group in a process of its own, so that it can be killed: prints what it is given.

python -m tests.clients.groups.member_process <client> <bootstrap> <group> <topic>
"""

import subprocess
import sys

from tests.broker_process import REPOSITORY
from tests.clients.groups.members import POLLERS


def start_member(client: str, bootstrap: str, group: str, topic: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.clients.groups.member_process"]
    return subprocess.Popen(
        [*command, client, bootstrap, group, topic], stdout=subprocess.PIPE, cwd=REPOSITORY
    )


def main(client: str, bootstrap: str, group: str, topic: str) -> None:
    poller = POLLERS[client](bootstrap, group, topic)
    while True:
        poller.poll()
        if assigned := poller.assignment():
            sys.stdout.write(f"{sorted(assigned)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
