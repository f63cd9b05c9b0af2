"""The small files of a log directory, in Kafka's formats.

recovery-point-offset-checkpoint   the log is on disk up to this offset
replication-offset-checkpoint      its high watermark
log-start-offset-checkpoint        its log start offset, if DeleteRecords moved it
cleaner-offset-checkpoint          the log is compacted up to this offset
meta.properties                    the cluster and node that own the directory
.kafka_cleanshutdown               exists only after a clean shutdown
.ottla_broker_epoch                the epoch of a broker that loses nothing in a crash
.ottla_boot                        the machine's boot id when the logs were last opened
<topic>-<partition>/partition.metadata   the topic id
"""

import base64
import json
from collections.abc import Mapping
from uuid import UUID

from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.topics import TopicPartition
from ottla.records.crc import crc32c
from ottla.storage.filesystem import Filesystem, write_unsynced
from ottla.storage.text_checkpoint import CorruptCheckpoint, read_entries, write_entries

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
REPLICATION_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
BROKER_EPOCH = ".ottla_broker_epoch"
BOOT = ".ottla_boot"
PARTITION_METADATA = "partition.metadata"

META_PROPERTIES_VERSION = 1
_CHECKSUM = "crc32c"
_CHECKSUM_COMMENT = f"#{_CHECKSUM}="


def write_offsets(filesystem: Filesystem, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    write_entries(filesystem, path, ((*key, offset) for key, offset in offsets.items()))


def read_offsets(filesystem: Filesystem, path: str) -> dict[TopicPartition, int]:
    """Empty if there is no file; CorruptCheckpoint if it cannot be parsed."""
    offsets = {}
    for fields in read_entries(filesystem, path):
        try:
            topic, partition, offset = fields
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise CorruptCheckpoint(path, f"{' '.join(fields)!r} is no offset entry") from None
    return offsets


@dataclass(frozen=True, slots=True)
class MetaProperties:
    cluster_id: str
    node_id: int
    directory_id: str


def write_meta_properties(filesystem: Filesystem, directory: str, meta: MetaProperties) -> None:
    """The checksum is in a comment, which Kafka skips."""
    text = (
        f"cluster.id={meta.cluster_id}\n"
        f"directory.id={meta.directory_id}\n"
        f"node.id={meta.node_id}\n"
        f"version={META_PROPERTIES_VERSION}\n"
    )
    content = f"{_CHECKSUM_COMMENT}{_checksum(text)}\n{text}".encode()
    filesystem.write_atomically(f"{directory}/{META_PROPERTIES}", content)


def read_meta_properties(filesystem: Filesystem, directory: str) -> MetaProperties | None:
    """None if the directory is new; CorruptCheckpoint if the file is damaged."""
    path = f"{directory}/{META_PROPERTIES}"
    if not filesystem.exists(path):
        return None
    text = filesystem.read_bytes(path).decode(errors="replace")
    first, _, rest = text.partition("\n")
    if first.startswith(_CHECKSUM_COMMENT) and first != _CHECKSUM_COMMENT + _checksum(rest):
        raise CorruptCheckpoint(path, f"its checksum is wrong (the line {first!r})")
    values = _parse_pairs(text, "=")
    version = values.get("version")
    if version != str(META_PROPERTIES_VERSION):
        raise CorruptCheckpoint(
            path, f"version {version} is not known" if version else "no version"
        )
    try:
        return MetaProperties(
            values["cluster.id"], int(values["node.id"]), values.get("directory.id", "")
        )
    except KeyError as error:
        raise CorruptCheckpoint(path, f"it has no {error.args[0]}") from None
    except ValueError:
        raise CorruptCheckpoint(path, f"node.id is {values['node.id']!r}") from None


def write_clean_shutdown(filesystem: Filesystem, directory: str, broker_epoch: int = -1) -> None:
    _write_epoch(filesystem, f"{directory}/{CLEAN_SHUTDOWN}", broker_epoch)


def read_clean_shutdown(filesystem: Filesystem, directory: str) -> int | None:
    """The broker epoch at the clean shutdown, -1 if unknown, None if there was none."""
    return _read_epoch(filesystem, f"{directory}/{CLEAN_SHUTDOWN}")


def write_broker_epoch(filesystem: Filesystem, directory: str, broker_epoch: int) -> None:
    """Only for a broker that has synced everything it claims to have."""
    _write_epoch(filesystem, f"{directory}/{BROKER_EPOCH}", broker_epoch)


def read_broker_epoch(filesystem: Filesystem, directory: str) -> int | None:
    """May be the epoch of an earlier run than the last; the controller knows better."""
    return _read_epoch(filesystem, f"{directory}/{BROKER_EPOCH}")


def is_same_boot(filesystem: Filesystem, directory: str) -> bool:
    """Whether the machine has not rebooted since the logs were last opened, so no write is lost."""
    path = f"{directory}/{BOOT}"
    boot_id = filesystem.boot_id().encode()
    return bool(boot_id) and filesystem.exists(path) and filesystem.read_bytes(path) == boot_id


def write_boot(filesystem: Filesystem, directory: str) -> None:
    """Call before the first change to a log."""
    if not is_same_boot(filesystem, directory):
        filesystem.write_atomically(f"{directory}/{BOOT}", filesystem.boot_id().encode())


def _write_epoch(filesystem: Filesystem, path: str, broker_epoch: int) -> None:
    text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    filesystem.write_atomically(path, text.encode())


def _read_epoch(filesystem: Filesystem, path: str) -> int | None:
    if not filesystem.exists(path):
        return None
    try:
        return int(json.loads(filesystem.read_bytes(path))["brokerEpoch"])
    except (ValueError, TypeError, KeyError):
        return -1


def remove_clean_shutdown(filesystem: Filesystem, directory: str) -> None:
    """Call before the first change to a log: from here on a shutdown is not clean."""
    path = f"{directory}/{CLEAN_SHUTDOWN}"
    if filesystem.exists(path):
        filesystem.remove(path)
        filesystem.sync_directory(directory)


def write_partition_metadata(filesystem: Filesystem, directory: str, topic_id: UUID) -> None:
    """A crash may lose or tear it. Kafka reads two lines and skips the checksum."""
    encoded = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
    text = f"version: 0\ntopic_id: {encoded}"
    data = f"{text}\n{_CHECKSUM}: {_checksum(encoded)}".encode()
    write_unsynced(filesystem, f"{directory}/{PARTITION_METADATA}", data)


def sync_partition_metadata(filesystem: Filesystem, directory: str) -> None:
    """Works even if an earlier sync failed: rewriting the bytes makes them dirty again."""
    file = filesystem.open(f"{directory}/{PARTITION_METADATA}")
    file.write_at(file.read(0, file.size), 0)
    file.sync()
    file.close()


def read_partition_metadata(filesystem: Filesystem, directory: str) -> UUID | None:
    """None if there is no file, as for the metadata log."""
    path = f"{directory}/{PARTITION_METADATA}"
    if not filesystem.exists(path):
        return None
    values = _parse_pairs(filesystem.read_bytes(path).decode(errors="replace"), ":")
    if values.get(_CHECKSUM) not in (None, _checksum(values.get("topic_id", ""))):
        raise CorruptCheckpoint(path, "its checksum is wrong")
    try:
        return UUID(bytes=base64.urlsafe_b64decode(values["topic_id"] + "=="))
    except (KeyError, ValueError):
        raise CorruptCheckpoint(path, "it has no topic id") from None


def _checksum(text: str) -> str:
    return f"{crc32c(text.encode()):08x}"


def _parse_pairs(text: str, separator: str) -> dict[str, str]:
    pairs = (line.partition(separator) for line in text.splitlines() if line[:1] not in "#!")
    return {key.strip(): value.strip() for key, _, value in pairs}
