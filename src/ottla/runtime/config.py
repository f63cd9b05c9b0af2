"""Broker keys of the metadata quorum driver."""

from typing import Final

from ottla.protocol.config import at_least, declared_keys, int_key, long_key

SNAPSHOT_BYTES: Final = long_key(
    "metadata.log.max.record.bytes.between.snapshots",
    20 * 1024 * 1024,
    "A snapshot of the metadata is written after this many bytes of records, or earlier if it "
    "would make a start read fewer records.",
    validator=at_least(1),
)

QUORUM_SIZE: Final = int_key(
    "quorum.size",
    3,
    "How many nodes become voters of the metadata quorum automatically. Use an odd number: 3 "
    "voters survive the loss of one, 5 of two. If there are more voters, a rack with several gives "
    "one up. Not a Kafka key.",
    validator=at_least(1),
)

BROKER_KEYS = declared_keys(globals())
