"""Broker keys that the driver of the metadata quorum obeys."""

from typing import Any, Final

from ottla.protocol.config import ConfigKey, ConfigType, at_least

SNAPSHOT_BYTES: Final = ConfigKey(
    "metadata.log.max.record.bytes.between.snapshots",
    ConfigType.LONG,
    20 * 1024 * 1024,
    "A snapshot of the metadata is written after this many bytes of records, or earlier if it "
    "would make a start read fewer records.",
    validator=at_least(1),
)

QUORUM_SIZE: Final = ConfigKey(
    "quorum.size",
    ConfigType.INT,
    3,
    "How many nodes become voters of the metadata quorum by themselves. Use an odd number: 3 "
    "voters survive the loss of one, 5 of two. If there are more, a rack with several gives one "
    "up. Ottla's own key.",
    validator=at_least(1),
)

BROKER_KEYS: Final[tuple[ConfigKey[Any], ...]] = (SNAPSHOT_BYTES, QUORUM_SIZE)
