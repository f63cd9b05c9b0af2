"""Writes docs/compatibility.md: `python -m ottla.cli.api_reference > docs/compatibility.md`."""

import sys

from kio.schema.index import api_key_map, schema_name_map

from ottla.cli.kafka_differences import differences
from ottla.handlers.api import Api, HotApi
from ottla.handlers.table import API_TABLE

_HEAD = """\
# Compatibility

Ottla serves the Kafka protocol as Apache Kafka 4.3 does, with two newer request versions from
Kafka 4.4. This page lists the supported APIs and every known difference in behavior. Brokers report
the same version ranges to clients in ApiVersions.

## Supported APIs

| key | API | versions | in Kafka 4.3 |
| --- | --- | --- | --- |
"""

_EXTENSIONS = """
## Extensions to the protocol

Ottla's own APIs have keys from 10000 up; clients that do not know them ignore them. Where Ottla
adds data to one of Kafka's messages, it uses tagged fields numbered from 10000, which clients skip.
They carry how long ShareFetch may hold the records it acquires, and how many records of a share
group are held or delayed (DescribeShareGroupOffsets). See [Queues](internals/queues.md).
"""

_FILES = """
## Files

A node's files use Kafka's formats. `DumpLogSegments` of Apache Kafka 4.3.1 can read segments and
indexes of a running node. The indexes of the active segment are updated every
`log.flush.offset.checkpoint.interval.ms`; Kafka updates them with every entry. Once the node is
stopped, Kafka can read everything: `DumpLogSegments` decodes segments, indexes, producer snapshots,
committed offsets, transactions and the metadata log, and a Kafka broker started on a copy of the
data serves the same records and committed offsets. That broker needs two things that Ottla does not
write:

- a `metadata.version` record in the metadata log; without one, Kafka's controller does not start
- a separate controller listener (`controller.listener.names=PLAINTEXT`, and another listener for
  clients); Ottla uses one listener for everything

Kafka ignores what Ottla adds: checksums in `meta.properties`, `quorum-state`, `partition.metadata`
and the checkpoints, and records of type 1000 in `__consumer_offsets` (members that a coordinator
has not heard from since it took over), for which it logs a warning.
"""

_NOT_SERVED = """
## Unsupported APIs

ApiVersions does not list these, and requests for them close the connection:

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
