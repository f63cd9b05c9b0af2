"""What retention and compaction have done, as plain integers that the node exports."""

from ottla.protocol.lazy_dataclass import dataclass
from ottla.storage.cleaner import Cleaned
from ottla.storage.log import PartitionLog


@dataclass(slots=True)
class StorageCounters:
    expired_segments: int = 0
    expired_bytes: int = 0
    cleanings: int = 0
    cleaner_bytes_read: int = 0
    cleaner_bytes_written: int = 0

    def delete_expired(self, log: PartitionLog, now_ms: int) -> None:
        size = log.size
        count = log.delete_expired(now_ms)
        if count:
            self.expired_segments += count
            self.expired_bytes += max(0, size - log.size)  # Appends go on meanwhile.

    def on_cleaned(self, cleaned: Cleaned) -> None:
        self.cleanings += 1
        self.cleaner_bytes_read += cleaned.bytes_read
        self.cleaner_bytes_written += cleaned.bytes_written
