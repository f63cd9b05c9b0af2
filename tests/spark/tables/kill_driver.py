"""A sync that dies at a point: `kill_driver.py BOOTSTRAP TOPIC TABLE POINT`.

The points differ in the state of the table: before a task has written, with files but no commit,
and with a commit that Spark does not know of. With `never` it runs until stopped, like the command.
With a maintenance point it also maintains the table, and dies with merged but uncommitted files,
after that commit, or after old files were removed.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from deltalake import DeltaTable
from deltalake.transaction import RemoveAction

from pyspark_ottla.tables import committing, delta, iceberg, maintenance, sync

POINTS = ("before_files", "after_files", "after_commit")
MAINTENANCE_POINTS = ("merged", "compacted", "vacuumed")
NEVER = "never"


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def replace(owner: object, name: str, instead: Callable[..., None]) -> None:
    assert callable(getattr(owner, name))
    setattr(owner, name, instead)


def die_after(owner: type, name: str) -> None:
    run = getattr(owner, name)

    def run_and_die(*arguments: Any, **named: Any) -> None:
        run(*arguments, **named)
        die()

    replace(owner, name, run_and_die)


def prepare_maintenance(point: str) -> list[str]:
    """Its command options."""
    maintenance._FILES_MIN = 2
    if point == "merged":
        replace(iceberg._Rewriter, "commit", die)
        create = DeltaTable.create_write_transaction

        def create_or_die(table: DeltaTable, actions: Any, *arguments: Any, **named: Any) -> None:
            if any(isinstance(action, RemoveAction) for action in actions):
                die()
            create(table, actions, *arguments, **named)

        replace(DeltaTable, "create_write_transaction", create_or_die)
    elif point == "compacted":
        for table in (delta.DeltaTableAt, iceberg.IcebergTableAt):
            replace(table, "vacuum", die)
    else:
        for table in (delta.DeltaTableAt, iceberg.IcebergTableAt):
            die_after(table, "vacuum")
    return ["--maintain", "--maintain-share", "100", "--retention-hours", "1"]


def main(bootstrap: str, topic: str, table: str, point: str) -> int:
    from ottla.cli.main import run

    if point == "before_files":
        replace(sync.TopicSync, "_write", die)
    elif point == "after_files":
        replace(committing, "append_files", die)
    elif point == "after_commit":
        replace(committing, "remove_strays", die)
    arguments = [topic, "--to", table, "--interval", "0.1", "--master", "local[2]"]
    if point in MAINTENANCE_POINTS:
        arguments += prepare_maintenance(point)
    return run(["table", "sync", *arguments, "--bootstrap-server", bootstrap])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
