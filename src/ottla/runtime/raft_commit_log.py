"""The metadata log as the controller machine sees it, on the quorum leader.

The machine starts from this node's image, which has everything committed, so there is nothing to
load. What it appends counts as committed once that image has it.
"""

from collections.abc import AsyncIterator, Sequence

from ottla.runtime.commit_log import Listener
from ottla.runtime.machine_batches import StoredBatch
from ottla.runtime.metadata_applier import MetadataApplier
from ottla.runtime.raft_driver import RaftDriver


class RaftCommitLog:
    """Implements `CommitLog`, for as long as this node leads."""

    def __init__(self, driver: RaftDriver, applier: MetadataApplier) -> None:
        self._driver = driver
        self._applier = applier
        self._listener: Listener | None = None

    @property
    def next_offset(self) -> int:
        return self._driver.log.end_offset

    @property
    def committed_offset(self) -> int:
        return self._applier.applied_offset

    def listen(self, listener: Listener) -> None:
        assert self._listener is None
        self._listener = listener

    async def load(self) -> AsyncIterator[Sequence[StoredBatch]]:
        nothing: tuple[Sequence[StoredBatch], ...] = ()
        for batches in nothing:
            yield batches

    def append(self, batch: bytearray) -> None:
        self._driver.append(batch)

    def on_applied(self) -> None:
        if self._listener is not None:
            self._listener.on_committed()
