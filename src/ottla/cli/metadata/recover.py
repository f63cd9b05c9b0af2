"""`ottla metadata recover`: one node goes on alone when the majority of the voters is lost."""

import time
from pathlib import Path

from ottla.cli.errors import CommandError
from ottla.cli.output import print_line
from ottla.cli.parameters import Flag
from ottla.node.quorum_recovery import Recoverable, recover_quorum
from ottla.storage.directory_identity import WrongDirectory
from ottla.storage.errors import StorageError
from ottla.storage.local_filesystem import LocalFilesystem

WARNING = """\
WARNING: this is for voters that are lost for good. Node {node} would become the only voter, and
its metadata that of the cluster. Topics, configs and leader changes from after its metadata ends
would be lost. If other nodes are left, check them too, and recover the one whose metadata reaches
furthest. Never start the lost nodes again with their old data: two of them could continue as the
old cluster.
Give --yes to do it."""


def recover(
    *,
    data: Path,
    id: int,  # noqa: A002
    yes: Flag = False,
) -> None:
    """Make a surviving node the only voter of its cluster. The node must be stopped.

    Args:
        data: The node's directory; its first one if it has several.
        id: Number of the node.
        yes: Confirm. Without it the command only shows what it would do.
    """
    try:
        found = recover_quorum(
            LocalFilesystem(),
            str(data.absolute()),
            id,
            time.time_ns() // 1_000_000,
            change=yes,
        )
    except (WrongDirectory, StorageError, OSError) as error:
        raise CommandError(str(error)) from None
    print_line(_description(id, found))
    if yes:
        print_line(f"node {id} is now the only voter; start it, and the others can join it again")
    else:
        print_line(WARNING.format(node=id))


def _description(node: int, found: Recoverable) -> str:
    voters = ", ".join(map(str, found.voters))
    return (
        f"node {node} of cluster {found.cluster_id}: metadata up to offset {found.end_offset}, "
        f"epoch {found.epoch}, voters {voters}"
    )
