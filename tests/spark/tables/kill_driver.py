"""A sync that dies at a point: `kill_driver.py BOOTSTRAP TOPIC TABLE POINT`.

The points are those between which the table is another one: before a task has written, with files
and no commit, and with a commit of which Spark does not know. With the point `never` it runs until
it is stopped, as the command does.
"""

import os
import signal
import sys
from typing import Any

from pyspark_ottla.tables import committing, sync

POINTS = ("before_files", "after_files", "after_commit")
NEVER = "never"


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(bootstrap: str, topic: str, table: str, point: str) -> int:
    from ottla.cli.main import run

    if point == "before_files":
        sync.TopicSync._write = die
    elif point == "after_files":
        committing.append_files = die
    elif point == "after_commit":
        committing.remove_strays = die
    arguments = [topic, "--to", table, "--interval", "0.1", "--master", "local[2]"]
    return run(["table", "sync", *arguments, "--bootstrap-server", bootstrap])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
