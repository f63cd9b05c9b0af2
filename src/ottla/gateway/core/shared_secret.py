"""The secret that the gateways of a cluster sign with, kept in the cluster itself.

The first gateway writes one to a compacted topic. Gateways that start at the same time may each
write one: each uses its own key, so compaction keeps them all, and every gateway signs with the one
at the lowest offset and accepts signatures by any of them.

Whoever can read the topic can forge handles; only gateways may read it.
"""

import asyncio
import secrets
import time
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import uuid4

from ottla.client.async_wire.cluster import Cluster
from ottla.gateway.core.access import Access
from ottla.gateway.core.compacted_table import CompactedTable
from ottla.gateway.core.handles import SECRET_BYTES, Signer

TOPIC: Final = "__gateway"

_KEY_PREFIX: Final = "secret/"
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
            found = await self._find()
            self._read_at_s = time.monotonic()
            if self._signer is None or found != self._secrets:
                self._secrets = found
                self._signer = Signer(found)
            return self._signer

    async def _find(self) -> list[bytes]:
        if self._secret_file is not None:
            content = await asyncio.to_thread(self._secret_file.read_bytes)
            return [sha256(content.strip()).digest()]
        async with self._access.cluster(retry_timeout_ms=_RETRY_TIMEOUT_MS) as cluster:
            return await shared_secrets(cluster)


async def shared_secrets(cluster: Cluster) -> list[bytes]:
    """In log order, at least one. Raises WireError if the cluster cannot be asked."""
    table = CompactedTable(cluster, TOPIC)
    await table.refresh()
    if not _secrets_in(table):
        await table.put(_KEY_PREFIX + uuid4().hex, secrets.token_bytes(SECRET_BYTES))
    return _secrets_in(table)


def _secrets_in(table: CompactedTable) -> list[bytes]:
    return [value for key, value in table.items() if key.startswith(_KEY_PREFIX)]
