"""Which of a table's small files are merged, and into how many.

Only files of similar size are merged, and only when there are enough of them. So a row is rewritten
once for each size that its file grows to, not each time new files arrive. A budget limits what is
rewritten at a time; the smallest files go first, because each costs a reader as much as a large
one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

LARGE_SHARE = 2  # A file of at least this fraction of the target is left alone.
_TIER_FACTOR = 8


@dataclass(frozen=True)
class StoredFile:
    path: str  # In the format's own form.
    size: int
    partition: tuple[tuple[str, str], ...] = ()  # Files of one partition are merged.
    entry: object = field(default=None, compare=False)  # The format's own description.


@dataclass(frozen=True)
class Compaction:
    target_bytes: int
    files_min: int = 2  # Fewer of similar size are left alone.
    tiered: bool = False  # Otherwise all small files count as similar in size.
    budget_bytes: int | None = None  # None: unlimited.


def choose_groups(files: Sequence[StoredFile], wanted: Compaction) -> list[list[StoredFile]]:
    """Each group becomes one file, or a few."""
    small = [file for file in files if file.size * LARGE_SHARE < wanted.target_bytes]
    ordered = sorted(small, key=lambda file: (_tier(file, wanted), file.partition))
    groups: list[list[StoredFile]] = []
    left = wanted.budget_bytes
    for _, alike in groupby(ordered, key=lambda file: (_tier(file, wanted), file.partition)):
        candidates = list(alike)
        if len(candidates) < max(2, wanted.files_min):
            continue
        for group in _packed(candidates, wanted.target_bytes):
            size = sum(file.size for file in group)
            if len(group) < 2:
                continue
            if left is not None:
                if size > left and groups:
                    return groups
                left -= size
            groups.append(group)
    return groups


def _tier(file: StoredFile, wanted: Compaction) -> int:
    """0 for the smallest files."""
    if not wanted.tiered:
        return 0
    tier, bound = 0, wanted.target_bytes // _TIER_FACTOR**3
    while file.size >= bound > 0:
        tier, bound = tier + 1, bound * _TIER_FACTOR
    return tier


def _packed(files: Sequence[StoredFile], target_bytes: int) -> Iterator[list[StoredFile]]:
    group: list[StoredFile] = []
    size = 0
    for file in files:
        if group and size + file.size > target_bytes:
            yield group
            group, size = [], 0
        group.append(file)
        size += file.size
    if group:
        yield group
