"""Replaces segments with the compacted one built from them.

    <base offset>.log.cleaned   being written; discarded after a crash
    <base offset>.log.swap      complete and synced; replaces every segment whose base
                                offset lies in its range

The indexes have the same suffixes and are renamed first, so that the log file speaks for all of
them: while there is a `.log.swap` the swap is in progress and `recover_swaps` finishes it; an index
with `.swap` but no log file belongs to a swap that has not begun.

The steps are renames in one directory, without a sync in between: journaling file systems keep
their order. The content was synced before, and `.deleted` files are removed only after the
directory was synced.
"""

import re
from collections.abc import Sequence

from ottla.storage.batch_walk import walk
from ottla.storage.filesystem import Filesystem
from ottla.storage.segment import LOG_SUFFIX, SEGMENT_SUFFIXES, Segment

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

_SEGMENT_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex)(\.cleaned|\.swap)?")


def swap_segments(
    filesystem: Filesystem, directory: str, base_offset: int, old: Sequence[Segment]
) -> list[str]:
    """Swap the files; under the log's lock, while none of the old segments changes.

    Returns the paths of the old files, to be removed once the directory has been synced.
    """
    stem = f"{directory}/{base_offset:020d}"
    _rename(filesystem, stem, CLEANED_SUFFIX, SWAP_SUFFIX)
    deleted = [path for segment in old for path in segment.mark_deleted()]
    _rename(filesystem, stem, SWAP_SUFFIX, "")
    return deleted


def recover_swaps(filesystem: Filesystem, directory: str) -> None:
    """Finish the swaps that a crash interrupted; call before the segments are listed."""
    files = [match for match in map(_SEGMENT_FILE.fullmatch, filesystem.list(directory)) if match]
    swaps = {int(match[1]) for match in files if match[2] == LOG_SUFFIX and match[3] == SWAP_SUFFIX}
    for match in files:
        is_unbegun = match[3] == SWAP_SUFFIX and int(match[1]) not in swaps
        if is_unbegun or match[3] == CLEANED_SUFFIX:
            filesystem.remove(f"{directory}/{match[0]}")
    for swap in sorted(swaps):
        end_offset = _end_offset(filesystem, f"{directory}/{swap:020d}{LOG_SUFFIX}{SWAP_SUFFIX}")
        for match in files:
            if match[3] is None and swap < int(match[1]) < end_offset:
                filesystem.remove(f"{directory}/{match[0]}")
        _rename(filesystem, f"{directory}/{swap:020d}", SWAP_SUFFIX, "")
    filesystem.sync_directory(directory)


def _rename(filesystem: Filesystem, stem: str, old_suffix: str, new_suffix: str) -> None:
    for suffix in reversed(SEGMENT_SUFFIXES):
        if filesystem.exists(stem + suffix + old_suffix):
            filesystem.rename(stem + suffix + old_suffix, stem + suffix + new_suffix)


def _end_offset(filesystem: Filesystem, path: str) -> int:
    """The offset after the last batch; CorruptLog if the batches are damaged."""
    file = filesystem.open(path)
    try:
        end_offset = 0
        for batch in walk(file, 0, file.size):
            end_offset = batch.last_offset + 1
        return end_offset
    finally:
        file.close()
