"""The log behind a machine: what was appended becomes committed later, or never.

Offsets at or past `committed_offset` may be lost; those below it never are. A log tells its
listener, on the event loop, when that offset has moved and when it failed.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple, Protocol

from ottla.runtime.machine_batches import StoredBatch


class Listener(NamedTuple):
    on_committed: Callable[[], None]
    on_failed: Callable[[BaseException], None]  # Nothing more is committed until `load`.


class CommitLog(Protocol):
    # Invariant: committed_offset <= next_offset; only `load` moves it back.

    @property
    def next_offset(self) -> int:
        """Of the next record that is appended."""

    @property
    def committed_offset(self) -> int: ...

    def load(self) -> AsyncIterator[Sequence[StoredBatch]]:
        """What the machine is to replay, in portions that are replayed in one go."""

    def listen(self, listener: Listener) -> None:
        """Before `load`; there is one listener."""

    def append(self, batch: bytearray) -> None:
        """Append a batch that `machine_batches` built, whole or not at all.

        Raises ApiError or StorageError.
        """
