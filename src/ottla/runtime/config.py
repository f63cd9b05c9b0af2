"""Broker keys that the runtime of the metadata obeys."""

from typing import Any, Final

from ottla.protocol.config import ConfigKey, ConfigType, at_least

SNAPSHOT_BYTES: Final = ConfigKey(
    "metadata.log.max.record.bytes.between.snapshots",
    ConfigType.LONG,
    20 * 1024 * 1024,
    "A snapshot of the cluster's metadata is written after this many bytes of records, or earlier "
    "when it would hold fewer records than are read at start.",
    validator=at_least(1),
)

BROKER_KEYS: Final[tuple[ConfigKey[Any], ...]] = (SNAPSHOT_BYTES,)
