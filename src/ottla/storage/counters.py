"""What retention and compaction have done, as plain integers that the node exports."""

from typing import Protocol

from ottla.protocol.lazy_dataclass import dataclass


class _Retained(Protocol):
    @property
    def size(self) -> int: ...

    def delete_expired(self, now_ms: int) -> int: ...


class _Cleaned(Protocol):
    @property
    def bytes_read(self) -> int: ...

    @property
    def bytes_written(self) -> int: ...


@dataclass(slots=True)
class StorageCounters:
    expired_segments: int = 0
    expired_bytes: int = 0
    cleanings: int = 0
    cleaner_bytes_read: int = 0
    cleaner_bytes_written: int = 0

    def delete_expired(self, log: _Retained, now_ms: int) -> None:
        size = log.size
        count = log.delete_expired(now_ms)
        if count:
            self.expired_segments += count
            self.expired_bytes += max(0, size - log.size)  # Appends go on meanwhile.

    def on_cleaned(self, cleaned: _Cleaned) -> None:
        self.cleanings += 1
        self.cleaner_bytes_read += cleaned.bytes_read
        self.cleaner_bytes_written += cleaned.bytes_written
