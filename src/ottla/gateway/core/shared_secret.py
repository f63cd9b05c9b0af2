"""The secret that the gateways of a cluster sign with, kept in the cluster itself.

The first gateway writes one to a compacted topic. Gateways that start at the same time may each
write one: each uses its own key, so compaction keeps them all, and every gateway signs with the one
at the lowest offset and accepts signatures by any of them.

Whoever can read the topic can forge handles; only gateways may read it.
"""

import asyncio
import secrets
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import uuid4

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.fetching import Fetcher
from ottla.client.wire.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.wire.producing import produce
from ottla.client.wire.topics import ensure_topic
from ottla.gateway.core.access import Access
from ottla.gateway.core.handles import SECRET_BYTES, Signer
from ottla.records.batch import iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records

TOPIC: Final = "__gateway"

_PARTITION: Final = TopicPartition(TOPIC, 0)
_KEY_PREFIX: Final = b"secret/"
_RETRY_TIMEOUT_MS: Final = 10_000
_READ_AGAIN_S: Final = 30.0


class SharedSigner:
    """This gateway's signer, created on first use: the cluster may start later."""

    def __init__(self, access: Access, secret_file: Path | None = None) -> None:
        """With a file, the cluster is not asked."""
        self._access = access
        self._secret_file = secret_file
        self._signer: Signer | None = None
        self._secrets: list[bytes] = []
        self._read_at_s = 0.0
        self._reading = asyncio.Lock()

    async def get(self) -> Signer:
        """Raises WireError if the cluster cannot be asked."""
        return self._signer or await self._read()

    async def get_newer(self) -> Signer | None:
        """A signer with secrets written since, if there are any; rate-limited."""
        before = self._signer
        if time.monotonic() - self._read_at_s < _READ_AGAIN_S:
            return None
        now = await self._read()
        return None if now is before else now

    async def _read(self) -> Signer:
        asked_at_s = time.monotonic()
        async with self._reading:
            if self._signer is not None and self._read_at_s > asked_at_s:
                return self._signer  # Another caller has just read it.
            found = await asyncio.to_thread(self._find)
            self._read_at_s = time.monotonic()
            if self._signer is None or found != self._secrets:
                self._secrets = found
                self._signer = Signer(found)
            return self._signer

    def _find(self) -> list[bytes]:
        if self._secret_file is not None:
            return [sha256(self._secret_file.read_bytes().strip()).digest()]
        with self._access.blocking_cluster(retry_timeout_ms=_RETRY_TIMEOUT_MS) as cluster:
            return shared_secrets(cluster)


def shared_secrets(cluster: Cluster) -> list[bytes]:
    """In log order, at least one. Blocks. Raises WireError if the cluster cannot be asked."""
    ensure_topic(cluster, TOPIC, partitions=1, config={"cleanup.policy": "compact"})
    found = list(_read(cluster))
    if not found:
        record = Record(
            timestamp=int(time.time() * 1000),
            key=_KEY_PREFIX + uuid4().hex.encode(),
            value=secrets.token_bytes(SECRET_BYTES),
        )
        produce(cluster, {_PARTITION: build_batch([record])})
        found = list(_read(cluster))
    return found


def _read(cluster: Cluster) -> Iterator[bytes]:
    offset = list_offsets(cluster, {_PARTITION: EARLIEST})[_PARTITION] or 0
    end = list_offsets(cluster, {_PARTITION: LATEST})[_PARTITION] or 0
    with Fetcher(cluster, _PARTITION) as fetcher:
        while offset < end:
            content = bytes(fetcher.fetch(offset).records)
            for position, header in iterate_headers(content):
                offset = header.next_offset
                for record in () if header.is_control else iterate_records(content, position):
                    if (record.key or b"").startswith(_KEY_PREFIX) and record.value:
                        yield record.value
