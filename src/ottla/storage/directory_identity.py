"""Who owns a log directory: locked by one process, marked for one node of one cluster."""

import base64
from uuid import UUID

from ottla.storage.checkpoints import (
    META_PROPERTIES,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from ottla.storage.filesystem import Filesystem, Lock
from ottla.storage.text_checkpoint import CorruptCheckpoint

LOCK_FILE = ".lock"

REPAIR = (
    "It says whose directory this is, and nothing is served without it. Put it back from a backup: "
    "it has the lines cluster.id, which is the same on every node, directory.id, node.id and "
    "version; the line with the checksum may be left out. If other nodes have all the data, you "
    "can also move the directory away and start the node with --join HOST:PORT of one of them"
)


class WrongDirectory(Exception):
    """The directory is in use or belongs to another node; nothing in it was touched."""


def lock_directory(filesystem: Filesystem, directory: str) -> Lock:
    filesystem.make_directory(directory)
    try:
        return filesystem.lock(f"{directory}/{LOCK_FILE}")
    except BlockingIOError:
        raise WrongDirectory(
            f"log directory {directory} is in use by another process;"
            " stop it, or give this one a directory of its own"
        ) from None


def is_in_place(filesystem: Filesystem, directory: str, lock: Lock) -> bool:
    """Whether the directory is still the one that was locked, and has not been emptied."""
    return lock.is_in_place() and filesystem.exists(f"{directory}/{META_PROPERTIES}")


def read_identity(filesystem: Filesystem, directory: str) -> MetaProperties | None:
    """None if the directory is new."""
    try:
        return read_meta_properties(filesystem, directory)
    except CorruptCheckpoint as error:
        raise WrongDirectory(f"{error}. {REPAIR}") from None


def identify_directory(
    filesystem: Filesystem, directory: str, node_id: int, cluster_id: str, new_id: UUID
) -> MetaProperties:
    """Check that this node owns the directory; a new one is claimed with the new id."""
    found = read_identity(filesystem, directory)
    if found is None:
        made = MetaProperties(cluster_id, node_id, format_id(new_id))
        write_meta_properties(filesystem, directory, made)
        return made
    if found.node_id != node_id:
        raise WrongDirectory(
            f"log directory {directory} belongs to node {found.node_id}, not to node {node_id}"
        )
    if found.cluster_id != cluster_id:
        raise WrongDirectory(
            f"log directory {directory} belongs to cluster {found.cluster_id}, not to {cluster_id}"
        )
    return found


def format_id(identity: UUID) -> str:
    """The id of a directory or cluster as Kafka writes it: 22 characters."""
    return base64.urlsafe_b64encode(identity.bytes).decode().rstrip("=")


def parse_directory_id(text: str) -> UUID | None:
    """Accepts the current and the former format; None if the text is neither."""
    try:
        return UUID(text)
    except ValueError:
        pass
    try:
        return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except ValueError:
        return None
