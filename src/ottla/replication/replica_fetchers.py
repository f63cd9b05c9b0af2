"""Assigns each partition to a fetcher, one per leader.

A follower and a leader share one connection for this, with one request in flight at a time, for all
partitions between them.
"""

from collections.abc import Callable
from typing import Final

from ottla.network.peers import Peers, PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ProtocolError
from ottla.protocol.hot_replica_fetch import (
    ReplicaFetchRequest,
    ReplicaFetchResponse,
    encode_replica_fetch,
    parse_replica_fetch_response,
)
from ottla.replication.partition import Partition
from ottla.replication.replica_fetcher import FetcherSettings, FetcherTools, ReplicaFetcher

PURPOSE: Final = "replication"


class ReplicaFetchers:
    def __init__(
        self,
        peers: Peers,
        address_of: Callable[[int], Address | None],
        timeout_ms: float,
        settings: FetcherSettings,
        tools: FetcherTools,
    ) -> None:
        """`timeout_ms` is how long a leader may take beyond the time that it may wait."""
        self._peers = peers
        self._address_of = address_of
        self._timeout_ms = timeout_ms + settings.wait_max_ms
        self._settings = settings
        self._tools = tools
        self._fetchers: dict[int, ReplicaFetcher] = {}  # By the leader's id.
        self._by_partition: dict[Partition, ReplicaFetcher] = {}

    def follow(self, partition: Partition, leader_id: int) -> None:
        """Start to follow, or continue in a new leader epoch."""
        if self._tools.supervisor.stopped:
            return
        fetcher = self._by_partition.get(partition)
        if fetcher is not None and fetcher.leader_id != leader_id:
            self.unfollow(partition)
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self._fetchers[leader_id] = self._new_fetcher(leader_id)
        self._by_partition[partition] = fetcher
        fetcher.follow(partition)

    async def truncate(self, partition: Partition, offset: int) -> None:
        """If it is followed: drop everything from `offset` on, and fetch it again."""
        fetcher = self._by_partition.get(partition)
        if fetcher is not None:
            await fetcher.truncate(partition, offset)

    def unfollow(self, partition: Partition) -> None:
        fetcher = self._by_partition.pop(partition, None)
        if fetcher is None:
            return
        fetcher.unfollow(partition)
        if not fetcher:
            del self._fetchers[fetcher.leader_id]
            fetcher.close()
            address = self._address_of(fetcher.leader_id)
            if address is not None:
                # Its last request may be waiting there, and the next one would wait behind it.
                self._peers.drop(address, PURPOSE, "leads nothing that is followed")

    def _new_fetcher(self, leader_id: int) -> ReplicaFetcher:
        async def exchange(request: ReplicaFetchRequest) -> ReplicaFetchResponse:
            return await self._exchange(leader_id, request)

        return ReplicaFetcher(leader_id, exchange, self._settings, self._tools)

    async def _exchange(self, leader_id: int, request: ReplicaFetchRequest) -> ReplicaFetchResponse:
        address = self._address_of(leader_id)
        if address is None:
            raise PeerUnreachable(f"broker {leader_id} has no address")
        frame = await self._peers.call_frame(
            address,
            lambda number: encode_replica_fetch(number, self._peers.client_id, request),
            purpose=PURPOSE,
            timeout_ms=self._timeout_ms,
        )
        try:
            return parse_replica_fetch_response(frame)
        except ProtocolError as error:
            self._peers.drop(address, PURPOSE, str(error))
            raise PeerUnreachable(f"{address} sent a response that is wrong: {error}") from error
