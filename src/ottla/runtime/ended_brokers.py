"""Finds brokers whose process has ended, so that no one waits for their sessions to expire.

The controller checks a broker when its heartbeat connection ends, and all brokers when it becomes
the controller: its predecessor may have died along with its node. A broker whose address refuses
connections has ended; other silence proves nothing, and the broker's session decides.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.controller.image import MetadataImage
from ottla.network.peers import PeerRefused, Peers, PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.codec import newest_request_type
from ottla.protocol.lazy_dataclass import dataclass
from ottla.runtime.leadership import Leadership
from ottla.runtime.supervisor import Supervisor

_PURPOSE: Final = "looking for ended brokers"
_API_VERSIONS_KEY: Final = 18
_API_VERSIONS_VERSION: Final = 3
_ATTEMPTS: Final = 5  # A process that ends may close its connections before its listener.
_RETRY_S: Final = 0.02
_TIMEOUT_MS: Final = 500


@dataclass(slots=True, kw_only=True)
class EndedBrokers:
    node_id: int
    leadership: Leadership
    image: MetadataImage
    address_of: Callable[[int], Address | None]
    peers: Peers
    supervisor: Supervisor

    async def watch(self) -> None:
        """Runs for as long as the node: checks all brokers when this becomes the controller."""
        while True:
            changed = self.leadership.changed
            if self.leadership.is_here:
                for broker in self.image.active_brokers():
                    self.look_at(broker.broker_id)
            await asyncio.wait([changed])

    def look_at(self, broker_id: int) -> None:
        broker = self.image.brokers.get(broker_id)
        if broker is not None and broker_id != self.node_id and not self.supervisor.stopped:
            self.supervisor.start(
                f"look at broker {broker_id}", self._look_at(broker_id, broker.broker_epoch)
            )

    async def _look_at(self, broker_id: int, broker_epoch: int) -> None:
        if await self._has_ended(broker_id):
            self.leadership.submit(
                lambda machine, now_ms: machine.brokers.end_broker(broker_id, broker_epoch, now_ms)
            )

    async def _has_ended(self, broker_id: int) -> bool:
        request = newest_request_type(_API_VERSIONS_KEY)(
            client_software_name="ottla", client_software_version="0"
        )
        for _ in range(_ATTEMPTS):
            address = self.address_of(broker_id)
            if address is None:
                return False
            try:
                await self.peers.call(
                    address,
                    request,
                    version=_API_VERSIONS_VERSION,
                    timeout_ms=_TIMEOUT_MS,
                    purpose=_PURPOSE,
                )
            except PeerRefused:
                return True
            except PeerUnreachable:
                await asyncio.sleep(_RETRY_S)
            else:
                return False
        return False
