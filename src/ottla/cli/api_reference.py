"""Writes docs/compatibility.md: `python -m ottla.cli.api_reference > docs/compatibility.md`."""

import sys

from kio.schema.index import api_key_map, schema_name_map

from ottla.cli.kafka_differences import differences
from ottla.handlers.api import Api, HotApi
from ottla.handlers.table import API_TABLE

_HEAD = """\
# Compatibility

Ottla serves the Kafka protocol in the versions of Kafka 4. A broker tells its ranges to every
client (ApiVersions); this page is made from the same table by `make docs`.

## Served

| key | API | versions | in Kafka 4 |
| --- | --- | --- | --- |
"""

_EXTENSIONS = """
## More than Kafka has

APIs with keys from 10000 on are Ottla's own; clients that do not know them pass over them. Where a
message of Kafka's has more to say, that is in tagged fields with numbers from 10000 on, which
clients skip: how long ShareFetch holds what it acquires, and how many records of a share group are
held or wait (DescribeShareGroupOffsets). [Queues](internals/queues.md) tells of both.
"""

_FILES = """
## Files

The files of a node are Kafka's. `DumpLogSegments` of Apache Kafka 4.3.1 reads segments and indexes
while the node runs; the indexes of the segment that is written to are brought up to date every
`log.flush.offset.checkpoint.interval.ms`, where Kafka's grow with each entry. Of a node that was
stopped, Kafka reads everything: `DumpLogSegments` decodes segments, indexes, producer snapshots,
committed offsets, transactions and the metadata log, and a broker of its own that is started on a
copy serves the same records and committed offsets. Two things it needs to be given:

- The metadata log has no level of `metadata.version`, and Kafka's controller does not start without
  one.
- Kafka wants a listener for controllers alone; Ottla has one for everyone
  (`controller.listener.names=PLAINTEXT`, and another listener for clients).

What Ottla adds, Kafka passes over: checksums in `meta.properties`, `quorum-state`,
`partition.metadata` and the checkpoints, and records of type 1000 in `__consumer_offsets` (members
that no coordinator has heard from), for which it logs a warning.
"""

_NOT_SERVED = """
## Not served

Clients that need one of these are told that it is not there.

"""


def reference() -> str:
    served = "".join(f"{_row(API_TABLE[key])}\n" for key in sorted(API_TABLE))
    others = (_camel(api_key_map[key]) for key in sorted(api_key_map) if key not in API_TABLE)
    return (
        _HEAD
        + served
        + _EXTENSIONS
        + differences()
        + _FILES
        + _NOT_SERVED
        + ", ".join(others)
        + ".\n"
    )


def _row(api: Api) -> str:
    claim = ""
    if isinstance(api, HotApi) and api.claimed_low != api.low:
        claim = f" (claimed from {api.claimed_low})"
    kafka = "not in Kafka"
    if api.key in api_key_map:
        versions = sorted(schema_name_map[api_key_map[api.key]])
        kafka = _range(versions[0], versions[-1])
    return f"| {api.key} | {api.name} | {_range(api.low, api.high)}{claim} | {kafka} |"


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


if __name__ == "__main__":
    sys.stdout.write(reference())
