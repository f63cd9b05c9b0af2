"""The log behind a machine: what was appended becomes committed later, or never.

Offsets at or past `committed_offset` may be lost; those below it never are. A log tells its
listener, on the event loop, when that offset has moved and when it failed.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ottla.machine.contract import RecordCodec
from ottla.records.builder import Record


class Listener(NamedTuple):
    on_committed: Callable[[], None]
    on_failed: Callable[[BaseException], None]  # Nothing more is committed until `load`.


class CommitLog(Protocol):
    next_offset: int  # Of the next record that is appended.
    committed_offset: int  # Invariant: committed_offset <= next_offset; only `load` moves it back.

    def load(self) -> Iterator[Record]:
        """All that is committed, and nothing else is left in the log.

        The records of a snapshot come first, all with the offset of the last one that it covers.
        """

    def listen(self, listener: Listener) -> None:
        """Before `load`; there is one listener."""

    def append(self, records: Sequence[Record]) -> None:
        """Append as one atomic batch. Raises ApiError or StorageError; see `load` for the rest."""

    def snapshot_due(self) -> bool:
        """Whether it is time to write one. Never for logs that compaction keeps small."""

    def write_snapshot(self, records: Sequence[object], codec: RecordCodec) -> None:
        """Begin to write `records`, the state up to `next_offset`, which is all committed."""
