"""Broker keys that the driver of the metadata quorum obeys."""

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

QUORUM_SIZE: Final = ConfigKey(
    "quorum.size",
    ConfigType.INT,
    3,
    "Nodes become voters of the metadata quorum by themselves until there are so many. An odd "
    "number: of 3 voters 1 may fail, of 5 voters 2. If there are more, a rack that has several "
    "gives one up. Ottla's own key.",
    validator=at_least(1),
)

BROKER_KEYS: Final[tuple[ConfigKey[Any], ...]] = (SNAPSHOT_BYTES, QUORUM_SIZE)
