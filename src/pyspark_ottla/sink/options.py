"""The options of a write, checked and typed."""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ottla.records.compression import Compression
from pyspark_ottla.cluster_options import NAMES as CLUSTER_NAMES
from pyspark_ottla.cluster_options import ClusterOptions, parse_cluster_options
from pyspark_ottla.options import OptionError, OptionValues

COMPRESSION = "compression"
KAFKA_COMPRESSION = "kafka.compression.type"
NAMES = (
    *CLUSTER_NAMES,
    "topic",
    "delivery",
    "sinkId",
    "batchId",
    COMPRESSION,
    KAFKA_COMPRESSION,
    "kafka.delivery.timeout.ms",
    "kafka.transaction.timeout.ms",
    # Spark's own, which it passes on.
    "checkpointLocation",
    "queryName",
    "path",
)

SINK_ID_CHARACTERS_MAX = 100

_SINK_ID = re.compile(r"[A-Za-z0-9_-]+")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
# Brokers' default maximum.
_TRANSACTION_TIMEOUT_MS = 900_000


class Delivery(enum.StrEnum):
    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"


@dataclass(frozen=True)
class SinkOptions:
    cluster: ClusterOptions
    topic: str | None  # None: from the rows.
    delivery: Delivery
    sink_id: str  # Empty unless delivery is exactly once.
    batch_id: int  # For an exactly-once write that is not a stream.
    compression: Compression
    transaction_timeout_ms: int  # For brokers without two-phase commit.


def validate_mode(*, overwrite: bool) -> None:
    if overwrite:
        raise OptionError("a topic is only appended to: use mode append")


def parse_sink_options(options: Mapping[str, str], *, is_stream: bool) -> SinkOptions:
    """Raises OptionError for invalid or conflicting options."""
    values = OptionValues(options, NAMES)
    delivery = _delivery(values, is_stream)
    retry_timeout_ms = values.positive("kafka.delivery.timeout.ms") or 120_000
    return SinkOptions(
        cluster=parse_cluster_options(values, retry_timeout_ms=retry_timeout_ms),
        topic=_topic(values),
        delivery=delivery,
        sink_id=_sink_id(values, delivery),
        batch_id=_batch_id(values, delivery, is_stream),
        compression=_compression(values),
        transaction_timeout_ms=values.positive("kafka.transaction.timeout.ms")
        or _TRANSACTION_TIMEOUT_MS,
    )


def _delivery(values: OptionValues, is_stream: bool) -> Delivery:
    given = values.choice("delivery", tuple(Delivery))
    if given is not None:
        return Delivery(given)
    return Delivery.EXACTLY_ONCE if is_stream else Delivery.AT_LEAST_ONCE


def _topic(values: OptionValues) -> str | None:
    topic = values.text("topic")
    if topic is not None and not _TOPIC.fullmatch(topic):
        raise OptionError(
            f"option topic is {topic!r}; a name has at most 249 letters, digits, '.', '_' and '-'"
        )
    return topic


def _sink_id(values: OptionValues, delivery: Delivery) -> str:
    sink_id = values.text("sinkId")
    if delivery is not Delivery.EXACTLY_ONCE:
        if sink_id is not None:
            raise OptionError(f"option sinkId has no meaning with delivery={delivery}")
        return ""
    if sink_id is None:
        raise OptionError(
            "option sinkId is missing: delivery=exactly_once needs a name for this sink that stays"
            " the same when the query restarts and that no other query uses, such as"
            " 'orders-to-alerts'; or choose delivery=at_least_once"
        )
    if not _SINK_ID.fullmatch(sink_id) or len(sink_id) > SINK_ID_CHARACTERS_MAX:
        raise OptionError(
            f"option sinkId is {sink_id!r}; it has 1 to {SINK_ID_CHARACTERS_MAX} letters, digits,"
            " '_' and '-'"
        )
    return sink_id


def _batch_id(values: OptionValues, delivery: Delivery, is_stream: bool) -> int:
    batch_id = values.number("batchId")
    if is_stream or delivery is not Delivery.EXACTLY_ONCE:
        if batch_id is not None:
            raise OptionError("option batchId is for batch writes with delivery=exactly_once")
        return 0
    if batch_id is None:
        raise OptionError(
            "option batchId is missing: a batch write with delivery=exactly_once needs a number"
            " that is the same when the write is repeated and higher for the next one, such as"
            " the one that foreachBatch gives"
        )
    if batch_id < 0:
        raise OptionError(f"option batchId is {batch_id} and must be at least 0")
    return batch_id


def _compression(values: OptionValues) -> Compression:
    name = values.one_of((COMPRESSION, KAFKA_COMPRESSION)) or COMPRESSION
    codecs = {codec.name.lower(): codec for codec in Compression}
    return codecs[values.choice(name, codecs) or "none"]
