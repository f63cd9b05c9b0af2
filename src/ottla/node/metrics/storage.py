"""Log directories, and the maintenance of their logs."""

from collections.abc import Iterator

from ottla.network.durations import Durations
from ottla.node.metrics.family import Section, copied
from ottla.storage.manager import LogManager

SECTION = Section("Storage")

_ONLINE = SECTION.gauge(
    "ottla_log_directory_online", "1 unless the directory has failed.", ("directory",)
)
_SIZE = SECTION.gauge("ottla_log_directory_size_bytes", "The size of the volume.", ("directory",))
_FREE = SECTION.gauge("ottla_log_directory_free_bytes", "Free space on the volume.", ("directory",))
_LOGS = SECTION.gauge("ottla_logs_bytes", "The size of all logs.")
_SEGMENTS = SECTION.gauge("ottla_log_segments", "The segments of all logs.")
_OPEN_FILES = SECTION.gauge(
    "ottla_log_open_files", "Open segment files; log.open.files.max limits them."
)
_DAMAGED = SECTION.gauge("ottla_damaged_logs", "Replicas here with some or all offsets damaged.")
_FLUSH = SECTION.histogram(
    "ottla_flush_duration_seconds",
    "Syncs that a response waited for, including the wait for a thread.",
)
_EXPIRED_SEGMENTS = SECTION.counter(
    "ottla_retention_segments_total", "Segments that retention has removed."
)
_EXPIRED_BYTES = SECTION.counter("ottla_retention_bytes_total", "Bytes that retention has removed.")
_CLEANINGS = SECTION.counter("ottla_cleaner_rounds_total", "Compactions of a log.")
_CLEANER_READ = SECTION.counter("ottla_cleaner_read_bytes_total", "Bytes that compaction has read.")
_CLEANER_WRITTEN = SECTION.counter(
    "ottla_cleaner_written_bytes_total", "Bytes that compaction has kept."
)
_UNCLEANABLE = SECTION.gauge(
    "ottla_cleaner_uncleanable_logs", "Logs that are no longer compacted because they are damaged."
)
_PRODUCERS = SECTION.gauge(
    "ottla_producer_ids", "Producers known to the logs, one for each partition they wrote to."
)


def collect(manager: LogManager, flushes: Durations) -> Iterator[str]:
    counters = manager.counters
    yield from _directories(manager)
    logs = copied(manager.logs)
    yield from _LOGS.line(sum(log.size for log in logs))
    yield from _SEGMENTS.line(sum(len(log.segments) for log in logs))
    yield from _OPEN_FILES.line(manager.log_dirs.open_files_count)
    yield from _DAMAGED.line(len(manager.damaged) + len(manager.corrupt.all))
    yield from _FLUSH.histogram([((), flushes)])
    yield from _EXPIRED_SEGMENTS.line(counters.expired_segments)
    yield from _EXPIRED_BYTES.line(counters.expired_bytes)
    yield from _CLEANINGS.line(counters.cleanings)
    yield from _CLEANER_READ.line(counters.cleaner_bytes_read)
    yield from _CLEANER_WRITTEN.line(counters.cleaner_bytes_written)
    yield from _UNCLEANABLE.line(manager.uncleanable_count)
    yield from _PRODUCERS.line(sum(len(log.producers) for log in logs))


def _directories(manager: LogManager) -> Iterator[str]:
    directories = manager.directories()
    yield from _ONLINE.by((each.path, int(each.online)) for each in directories)
    yield from _SIZE.by(
        (each.path, each.total_bytes) for each in directories if each.total_bytes >= 0
    )
    yield from _FREE.by(
        (each.path, each.usable_bytes) for each in directories if each.usable_bytes >= 0
    )
