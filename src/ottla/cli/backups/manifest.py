"""What a backup says of itself.

    backup.json                                the last run that came to its end: a document of all
                                               but the records, and where each partition ended
    runs/TIME.json                             the same of every run that was not pruned
    topics/NAME@ID/PARTITION/manifest.json     the chunks of one partition
    topics/NAME@ID/PARTITION/OFFSET.log        a chunk: batches as they lie in the log

A chunk is written, then named in the manifest. A run that is interrupted leaves chunks from which
the next one goes on, and backup.json as it was. Runs share the chunks.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ottla.cli.backups.store import Store
from ottla.cli.errors import CommandError

FORMAT: Final = 1
DOCUMENT: Final = "backup.json"
RUNS: Final = "runs"
MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class Chunk:
    name: str
    start_offset: int  # Where the one before it ends, or the log starts.
    next_offset: int
    size: int
    sha256: str

    @classmethod
    def of(cls, start_offset: int, next_offset: int, size: int, sha256: str) -> "Chunk":
        return cls(chunk_name(start_offset), start_offset, next_offset, size, sha256)


def chunk_name(start_offset: int) -> str:
    return f"{start_offset:020}.log"


@dataclass(slots=True)
class PartitionManifest:
    """Invariant: chunks follow each other; offsets between two are gone for good."""

    log_start_offset: int
    end_offset: int
    chunks: list[Chunk] = field(default_factory=list)

    def save(self, store: Store, path: str) -> None:
        store.write(f"{path}/{MANIFEST}", json.dumps(asdict(self), indent=1).encode())

    @classmethod
    def load(cls, store: Store, path: str) -> "PartitionManifest | None":
        name = f"{path}/{MANIFEST}"
        data = store.read(name)
        if data is None:
            return None
        with _readable(f"{store.address}/{name}"):
            document = json.loads(data)
            chunks = [Chunk(**chunk) for chunk in document.pop("chunks")]
            return cls(**document, chunks=chunks)

    @classmethod
    def existing(cls, store: Store, path: str) -> "PartitionManifest":
        """CommandError if there is none."""
        manifest = cls.load(store, path)
        if manifest is None:
            raise CommandError(f"{store.address}/{path}/{MANIFEST} is missing")
        return manifest


@dataclass(slots=True)
class TopicBackup:
    name: str
    id: str
    replication_factor: int
    configs: dict[str, str]
    end_offsets: dict[int, int] = field(default_factory=dict)  # By partition.
    start_offsets: dict[int, int] = field(default_factory=dict)  # Of the logs in the cluster.

    def path(self, partition: int) -> str:
        return f"topics/{self.name}@{self.id}/{partition:05}"


@dataclass(slots=True)
class BackupDocument:
    cluster_id: str | None
    taken_at: str
    topics: list[TopicBackup]
    state: dict[str, Any]  # See `cluster_state.ClusterState`.

    @property
    def run(self) -> str:
        """The time as a name: 20261118T014500Z."""
        return self.taken_at.replace("-", "").replace(":", "")

    def save(self, store: Store) -> None:
        document = json.dumps({"format": FORMAT, **asdict(self)}, indent=1).encode()
        store.write(run_path(self.run), document)
        store.write(DOCUMENT, document)

    @classmethod
    def load(cls, store: Store, run: str | None = None) -> "BackupDocument":
        """Of the last run, or of the named one."""
        name = DOCUMENT if run is None else run_path(run)
        data = store.read(name)
        if data is None and run is not None:
            raise CommandError(
                f"{store.address} has no run {run}; see `ottla backup list {store.address}`"
            )
        if data is None:
            raise CommandError(
                f"{store.address} has no complete backup; run `ottla backup --to {store.address}`"
                " to its end"
            )
        with _readable(f"{store.address}/{name}"):
            document = json.loads(data)
            if document.pop("format") != FORMAT:
                raise ValueError("another version of Ottla wrote it")
            topics = [_topic(topic) for topic in document.pop("topics")]
            return cls(topics=topics, **document)


@contextmanager
def _readable(address: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise CommandError(f"{address} cannot be read: {error}") from None


def run_path(run: str) -> str:
    return f"{RUNS}/{run}.json"


def runs_of(store: Store) -> list[str]:
    """The runs that are kept, oldest first."""
    found = store.names(".json", under=RUNS)
    return [name.removeprefix(f"{RUNS}/").removesuffix(".json") for name in found]


def _topic(document: dict[str, Any]) -> TopicBackup:
    offsets = {
        key: {int(partition): offset for partition, offset in document.get(key, {}).items()}
        for key in ("end_offsets", "start_offsets")
    }
    return TopicBackup(**{**document, **offsets})
