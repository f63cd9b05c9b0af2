"""The log behind a machine: what is appended is committed later, or never.

Offsets at or past `committed_offset` may be lost; those below it never are. A log notifies its
listener, on the event loop, when that offset has advanced and when the log failed.
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
        """The offset of the next appended record."""

    @property
    def committed_offset(self) -> int: ...

    def load(self) -> AsyncIterator[Sequence[StoredBatch]]:
        """The batches to replay, in portions; each portion is replayed without interruption."""

    def listen(self, listener: Listener) -> None:
        """Call before `load`; there is only one listener."""

    def append(self, batch: bytearray) -> None:
        """Append a batch that `machine_batches` built, all or nothing.

        Raises ApiError or StorageError.
        """
