"""Replaces a damaged replica of the metadata: it is set aside, and rebuilt.

A replica that has acknowledged something and forgotten it must not vote as the same voter again.
So the voter id, which makes it another voter, is stored next to its log (`voter-id`) and is set
aside with it: the rebuilt replica has a new one, and joins as an observer does. Without that file
the voter id is the id of the log directory. See docs/adr/0018.

The new directory is first created under another name. A start that is interrupted resumes there.
"""

from typing import Final
from uuid import UUID

from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, TopicPartition
from ottla.raft.control_records import voters_in
from ottla.raft.quorum_state import QuorumState
from ottla.raft.voters import VoterSet
from ottla.records.crc import crc32c
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.storage.damage import Examination, IntactBatch
from ottla.storage.errors import DamagedMetadata
from ottla.storage.filesystem import File, Filesystem
from ottla.storage.partition_names import name_for_stray

VOTER_ID: Final = "voter-id"
_METADATA: Final = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
_OFFSET_MAX: Final = 2**63 - 1
_PREPARED: Final = f"{_METADATA}.new"


def read_voter_id(filesystem: Filesystem, data_directory: str) -> UUID | None:
    """None if it is the id of the log directory."""
    path = f"{data_directory}/{_METADATA}/{VOTER_ID}"
    if not filesystem.exists(path):
        return None
    content = filesystem.read_bytes(path)
    try:
        voter_id = UUID(content.decode().split()[0])
    except (ValueError, IndexError):
        voter_id = None
    if voter_id is None or content != _voter_id(voter_id):
        raise DamagedMetadata(data_directory, f"{path} is damaged")
    return voter_id


def set_metadata_aside(
    filesystem: Filesystem, data_directory: str, voter_id: UUID, unique: UUID
) -> str:
    """Returns its new path, whose name ends in `-stray`."""
    directory, prepared = f"{data_directory}/{_METADATA}", f"{data_directory}/{_PREPARED}"
    aside = f"{data_directory}/{name_for_stray(_METADATA, unique)}"
    filesystem.remove_tree(prepared)
    filesystem.make_directory(prepared)
    filesystem.write_atomically(f"{prepared}/{VOTER_ID}", _voter_id(voter_id))
    QuorumStateFile(filesystem, prepared).save(QuorumState())  # Of a node about to join.
    filesystem.rename(directory, aside)
    filesystem.sync_directory(data_directory)
    finish_setting_aside(filesystem, data_directory)
    return aside


def finish_setting_aside(filesystem: Filesystem, data_directory: str) -> None:
    """Resume if a start was interrupted after it had set the replica aside."""
    directory, prepared = f"{data_directory}/{_METADATA}", f"{data_directory}/{_PREPARED}"
    if filesystem.exists(prepared) and not filesystem.exists(directory):
        filesystem.rename(prepared, directory)
        filesystem.sync_directory(data_directory)


def last_voters(filesystem: Filesystem, data_directory: str) -> VoterSet:
    """As far as the damaged files show. Good enough to know which nodes to ask."""
    directory = f"{data_directory}/{_METADATA}"
    found = VoterSet()
    for name in filesystem.list(directory):
        if name.endswith((".checkpoint", ".log")):
            found = _last_voters(filesystem.open(f"{directory}/{name}")) or found
    return found


def _last_voters(file: File) -> VoterSet | None:
    intact: list[IntactBatch] = []
    examination = Examination(
        file, 0, file.size, floor=0, ceiling=_OFFSET_MAX, on_intact=intact.append
    )
    while not examination.is_done:
        examination.advance(file.size)
    content = file.read(0, file.size)
    file.close()
    voters = [each for batch in intact for _, each in voters_in(content, batch.position)]
    return voters[-1] if voters else None


def _voter_id(voter_id: UUID) -> bytes:
    return f"{voter_id} {crc32c(voter_id.bytes):08x}\n".encode()
