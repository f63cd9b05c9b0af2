"""Fills a topic with records of one size, in the batches of a producer with defaults."""

import numpy as np
import pyarrow as pa

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.producing import produce
from ottla.protocol.topics import TopicPartition
from ottla.records.columnar.encoder import Rows, Writing, encode_batches

BATCH_BYTES = 16 * 1024
CHUNK_ROWS = 20_000
KEYS = 5_000


def fill(
    address: str, topic: str, partitions: int, rows: int, value_size: int, first_ms: int
) -> None:
    """Row n of each partition has timestamp `first_ms` + n, which retention must allow."""
    keys = pa.array([b"key%07d" % (index % KEYS) for index in range(CHUNK_ROWS)], pa.binary())
    values = _values(value_size)
    with Cluster(address) as cluster:
        for first in range(0, rows // partitions, CHUNK_ROWS):
            count = min(CHUNK_ROWS, rows // partitions - first)
            timestamps = first_ms + first + np.arange(count)
            chunk = Rows(timestamps, keys.slice(0, count), values.slice(0, count))
            for batch in encode_batches(chunk, Writing(batch_bytes_max=BATCH_BYTES)):
                places = [TopicPartition(topic, partition) for partition in range(partitions)]
                produce(cluster, dict.fromkeys(places, batch.data))


def _values(value_size: int) -> pa.Array:
    """JSON-like values of about this size, a fifth more or less."""
    sizes = np.random.default_rng(1).integers(value_size * 4 // 5, value_size * 6 // 5, CHUNK_ROWS)
    text = b'{"order": 4711, "item": "lamp", "price": 30.5, "customer": "anna"}, '
    text *= value_size * 6 // 5 // len(text) + 1
    return pa.array([text[:size] for size in sizes.tolist()], pa.binary())
