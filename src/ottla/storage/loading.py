"""Loads the files of a log.

After a clean shutdown only the end of the last segment is read, so the size of a log does not
matter. After a crash, or if something is not as it was left, `recovery` repairs it.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ottla.storage.errors import CorruptLog
from ottla.storage.filesystem import TEMPORARY_SUFFIX, Filesystem
from ottla.storage.found_batches import replay_producers
from ottla.storage.leader_epochs import LeaderEpochCache
from ottla.storage.log_directory import LogDirectory
from ottla.storage.producer_state import ProducerStateManager
from ottla.storage.recovery import LoadRequest, Recovery, remove_all, unindexed_bytes_max
from ottla.storage.segment import (
    DELETED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    Segment,
)
from ottla.storage.segment_swap import CLEANED_SUFFIX, SWAP_SUFFIX, recover_swaps
from ottla.storage.text_checkpoint import CorruptCheckpoint

logger = logging.getLogger(__name__)

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
_LEFTOVER_SUFFIXES = (DELETED_SUFFIX, TEMPORARY_SUFFIX)


class LoadedLog(NamedTuple):
    segments: tuple[Segment, ...]  # Oldest first, at least one; everything in them is synced.
    log_start_offset: int
    log_end_offset: int
    leader_epochs: LeaderEpochCache
    producers: ProducerStateManager
    may_lack_synced: bool  # Batches that other replicas may rely on were truncated.


def load_log(log_directory: LogDirectory, request: LoadRequest) -> LoadedLog:
    filesystem = log_directory.filesystem
    names = _without_leftovers(filesystem, request.directory)
    segments = _find_segments(log_directory, request, names)
    producers = ProducerStateManager(
        request.topic_partition,
        request.directory,
        filesystem,
        expiration_ms=request.producer_expiration_ms,
        names=names,
    )
    epochs = _load_epochs(filesystem, f"{request.directory}/{LEADER_EPOCH_CHECKPOINT}")
    if epochs is None:
        epochs = LeaderEpochCache(f"{request.directory}/{LEADER_EPOCH_CHECKPOINT}", filesystem)
        request = replace(request, checks_all=True, clean_shutdown=False)
    clean_shutdown = request.clean_shutdown and _has_indexes(request, segments, set(names))
    log_end_offset = _load_cleanly(segments[-1], request, epochs) if clean_shutdown else None
    may_lack_synced = False
    log_start_offset = _log_start(request, segments)
    if log_end_offset is None:
        recovery = Recovery(request, segments, producers, epochs)
        log_end_offset = recovery.run(log_start_offset)
        segments = recovery.segments
        may_lack_synced = recovery.may_lack_synced
    else:
        offset = producers.truncate_and_reload(log_start_offset, log_end_offset, request.now_ms)
        replay_producers(producers, segments, offset, log_end_offset)
    if log_start_offset > log_end_offset:
        segments = _start_anew(log_directory, request, segments)
        producers.truncate_fully()
        log_end_offset = log_start_offset
    epochs.truncate_from_end(log_end_offset)
    epochs.truncate_from_start(log_start_offset)
    producers.remove_stray_snapshots(segment.base_offset for segment in segments)
    return LoadedLog(
        tuple(segments), log_start_offset, log_end_offset, epochs, producers, may_lack_synced
    )


def _without_leftovers(filesystem: Filesystem, directory: str) -> list[str]:
    """The file names, after interrupted swaps and deletions are finished or undone."""
    names = filesystem.list(directory)
    if any(name.endswith((SWAP_SUFFIX, CLEANED_SUFFIX)) for name in names):
        recover_swaps(filesystem, directory)
        names = filesystem.list(directory)
    for name in names:
        if name.endswith(_LEFTOVER_SUFFIXES):
            filesystem.remove(f"{directory}/{name}")
    return [name for name in names if not name.endswith(_LEFTOVER_SUFFIXES)]


def _find_segments(
    log_directory: LogDirectory, request: LoadRequest, names: list[str]
) -> list[Segment]:
    segments = []
    stems = {name[: -len(LOG_SUFFIX)] for name in names if name.endswith(LOG_SUFFIX)}
    for name in names:
        stem, dot, suffix = name.rpartition(".")
        if dot + suffix not in SEGMENT_SUFFIXES or not stem.isdigit():
            continue
        path = f"{request.directory}/{name}"
        if dot + suffix == LOG_SUFFIX:
            size = log_directory.filesystem.size(path)
            segments.append(
                Segment(log_directory, request.directory, int(stem), size=size, on_disk=True)
            )
        elif stem not in stems:
            log_directory.filesystem.remove(path)
    return segments or [Segment(log_directory, request.directory, request.log_start_offset)]


def _load_epochs(filesystem: Filesystem, path: str) -> LeaderEpochCache | None:
    """None if they must be rebuilt from the batches."""
    try:
        return LeaderEpochCache.load(path, filesystem)
    except CorruptCheckpoint as error:
        logger.warning("rebuilding leader epochs: %s", error)
        return None


def _has_indexes(request: LoadRequest, segments: Iterable[Segment], names: set[str]) -> bool:
    for segment in segments:
        stem = f"{segment.base_offset:020d}"
        required = {stem + TIME_INDEX_SUFFIX} if segment.size else set()
        if segment.size > unindexed_bytes_max(request.config):
            required.add(stem + OFFSET_INDEX_SUFFIX)
        if not required <= names:
            logger.warning("%s has no indexes; rebuilding them", segment.path)
            return False
    return True


def _load_cleanly(active: Segment, request: LoadRequest, epochs: LeaderEpochCache) -> int | None:
    """The log's end offset, or None if a clean shutdown did not leave the last segment this way."""
    if not active.size:
        active.begin_indexing()  # Truncated entries may be back after a power loss.
        return active.base_offset
    try:
        log_end_offset = active.load_tail()
        active.first_batch()  # The age of the segment counts from its first batch.
        last = active.find_offset(log_end_offset - 1)
    except CorruptLog as error:
        logger.warning("checking the log despite a clean shutdown: %s", error)
        return None
    epoch = -1 if last is None else active.header_at(last.position).partition_leader_epoch
    if request.recovery_point in (0, log_end_offset) and epoch == epochs.latest_epoch:
        return log_end_offset
    logger.warning(
        "checking %s despite a clean shutdown: it ends at offset %d with leader epoch %d, "
        "but %d and %d were recorded",
        active.path,
        log_end_offset,
        epoch,
        request.recovery_point,
        epochs.latest_epoch,
    )
    return None


def _log_start(request: LoadRequest, segments: Sequence[Segment]) -> int:
    """After a clean shutdown it is in the first segment or at its end: others were removed."""
    written = request.log_start_offset
    if request.clean_shutdown and len(segments) > 1 and written > segments[1].base_offset:
        logger.error(
            "%s does not start at offset %d, as recorded; all of it is kept",
            request.directory,
            written,
        )
        return segments[0].base_offset
    return max(written, segments[0].base_offset)


def _start_anew(
    log_directory: LogDirectory, request: LoadRequest, segments: Sequence[Segment]
) -> list[Segment]:
    """Start with an empty segment: everything is before the log start offset."""
    for segment in reversed(segments):
        remove_all(log_directory.filesystem, segment.mark_deleted())
    return [Segment(log_directory, request.directory, request.log_start_offset)]
