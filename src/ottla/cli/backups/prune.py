"""`ottla backup prune`: forgets old runs, and removes what only they had.

A kept run needs, of each of its topics, what its log held at the time. So a topic goes when no kept
run has it, and a chunk when its records had left the log, by retention or DeleteRecords, before the
oldest kept run. Compaction moves no log start: what it replaced stays.

A run is forgotten first, then a manifest names fewer chunks, then files go: wherever it is
interrupted, the kept runs can be restored, and the next prune removes the rest.
"""

import datetime as dt

from ottla.cli.backups.manifest import (
    MANIFEST,
    BackupDocument,
    PartitionManifest,
    run_path,
    runs_of,
)
from ottla.cli.backups.store import Store, open_store
from ottla.cli.errors import UsageError
from ottla.cli.output import format_size, print_outcome
from ottla.cli.parameters import AsJson, Flag


def prune(
    from_: str,
    /,
    *,
    keep: int | None = None,
    days: float | None = None,
    dry_run: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Forget old runs of a backup, and remove what only they had.

    The last run is always kept.

    Args:
        from_: The directory, or the URL of the object store.
        keep: How many of the newest runs to keep.
        days: Also keep runs younger than this many days.
        dry_run: Only show what would be removed.
    """
    if keep is None and days is None:
        raise UsageError("say what to keep: --keep RUNS, --days DAYS or both")
    if (keep or 0) < 0 or (days or 0) < 0:
        raise UsageError("--keep and --days are not negative")
    store = open_store(from_)
    last = BackupDocument.load(store)
    with store.lock():
        runs = runs_of(store)
        kept = kept_runs(runs, keep or 0, dt.timedelta(days=days or 0), dt.datetime.now(dt.UTC))
        documents = [last, *(BackupDocument.load(store, run) for run in kept if run != last.run)]
        forgotten = [run for run in runs if run not in kept and run != last.run]
        rest = _Rest(store, documents)
        rest.look()
        if not dry_run:
            for run in forgotten:
                store.delete(run_path(run))
            rest.remove()
    would = "would be " if dry_run else ""
    text = (
        f"{len(forgotten)} runs {would}forgotten and {len(rest.names)} files"
        f" {would}removed, {format_size(rest.bytes)} of records; {len(documents)} runs are kept"
    )
    summary = {"from": store.address, "forgotten": forgotten, "kept": len(documents)}
    summary |= {"files": len(rest.names), "bytes": rest.bytes}
    print_outcome(summary, text, as_json=as_json)


def kept_runs(
    runs: list[str], newest_count: int, age_max: dt.timedelta, now: dt.datetime
) -> list[str]:
    """Of runs in order."""
    newest = set(runs[-newest_count:]) if newest_count else set[str]()
    oldest = (now - age_max).strftime("%Y%m%dT%H%M%SZ")
    return [run for run in runs if run in newest or run >= oldest]


class _Rest:
    """What no document needs."""

    def __init__(self, store: Store, documents: list[BackupDocument]) -> None:
        self._store = store
        self._starts: dict[str, int] = {}  # Where the first kept run of a partition starts.
        for document in documents:
            for topic in document.topics:
                for partition in topic.end_offsets:
                    path = topic.path(partition)
                    start = topic.start_offsets.get(partition, 0)
                    self._starts[path] = min(start, self._starts.get(path, start))
        self._shorter: dict[str, PartitionManifest] = {}
        self.names: list[str] = []  # Manifests of removed partitions come last.
        self.bytes = 0

    def look(self) -> None:
        found: dict[str, list[str]] = {}
        for name in self._store.names("", under="topics"):
            found.setdefault(name.rpartition("/")[0], []).append(name.rpartition("/")[2])
        for path, files in found.items():
            manifest = PartitionManifest.load(self._store, path)
            if path in self._starts and manifest is not None:
                self._look_at(path, manifest, files)
            elif path not in self._starts:
                self.bytes += sum(chunk.size for chunk in manifest.chunks) if manifest else 0
                files.sort(key=lambda file: file == MANIFEST)
                self.names += [f"{path}/{file}" for file in files]

    def _look_at(self, path: str, manifest: PartitionManifest, files: list[str]) -> None:
        start = self._starts[path]
        gone = [chunk for chunk in manifest.chunks if chunk.next_offset <= start]
        if gone:
            kept = manifest.chunks[len(gone) :]
            self._shorter[path] = PartitionManifest(gone[-1].next_offset, manifest.end_offset, kept)
            self.bytes += sum(chunk.size for chunk in gone)
        named = {chunk.name for chunk in manifest.chunks[len(gone) :]} | {MANIFEST}
        self.names += [f"{path}/{file}" for file in files if file not in named]

    def remove(self) -> None:
        for path, manifest in self._shorter.items():
            manifest.save(self._store, path)
        for name in self.names:
            self._store.delete(name)
