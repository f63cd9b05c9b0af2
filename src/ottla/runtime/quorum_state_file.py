"""The `quorum-state` file in the directory of the metadata log.

Writes are atomic, and the file is on disk when `save` or `load` returns.
"""

from typing import Final

from ottla.raft.quorum_state import QuorumState
from ottla.storage.errors import DamagedMetadata
from ottla.storage.filesystem import Filesystem

QUORUM_STATE: Final = "quorum-state"


class QuorumStateFile:
    """The methods wait for the disk. Callers handle OSError."""

    def __init__(self, filesystem: Filesystem, directory: str) -> None:
        self._filesystem = filesystem
        self._directory = directory

    @property
    def path(self) -> str:
        return f"{self._directory}/{QUORUM_STATE}"

    def load(self) -> QuorumState | None:
        """None if there is no file; DamagedMetadata if it cannot be parsed."""
        if not self._filesystem.exists(self.path):
            return None
        self._filesystem.sync_directory(self._directory)  # A `save` may have failed to do it.
        try:
            return QuorumState.from_json(self._filesystem.read_bytes(self.path).decode())
        except ValueError as error:
            raise DamagedMetadata(self._directory, f"{self.path} is {error}") from error

    def save(self, state: QuorumState) -> None:
        self._filesystem.write_atomically(self.path, state.to_json().encode())
