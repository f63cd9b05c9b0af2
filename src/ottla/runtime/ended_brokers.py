"""Finds brokers whose process has ended, so that no one waits for their sessions to expire.

The controller checks a broker when its heartbeat connection ends, and all brokers when it becomes
the controller: its predecessor may have died along with its node. A broker whose address refuses
connections has ended; other silence proves nothing, and the broker's session decides.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from ottla.controller.image import MetadataImage
from ottla.controller.machine import ControllerMachine
from ottla.network.peers import PeerRefused, Peers, PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.codec import newest_request_type
from ottla.runtime.leadership import Leadership
from ottla.runtime.machine_runtime import MachineRuntime
from ottla.runtime.supervisor import Supervisor

_PURPOSE: Final = "looking for ended brokers"
_API_VERSIONS_KEY: Final = 18
_API_VERSIONS_VERSION: Final = 3
_ATTEMPTS: Final = 5  # A process that ends may close its connections before its listener.
_RETRY_S: Final = 0.02
_TIMEOUT_MS: Final = 500


class EndedBrokers:
    """`runtime` returns None while another node is the controller."""

    def __init__(
        self,
        node_id: int,
        runtime: Callable[[], MachineRuntime[ControllerMachine] | None],
        image: MetadataImage,
        address_of: Callable[[int], Address | None],
        peers: Peers,
        supervisor: Supervisor,
    ) -> None:
        self._node_id = node_id
        self._runtime = runtime
        self._image = image
        self._address_of = address_of
        self._peers = peers
        self._supervisor = supervisor

    async def watch(self, leadership: Leadership) -> None:
        """Runs for as long as the node: checks all brokers when this becomes the controller."""
        while True:
            changed = leadership.changed
            if leadership.is_here:
                for broker in self._image.active_brokers():
                    self.look_at(broker.broker_id)
            await asyncio.wait([changed])

    def look_at(self, broker_id: int) -> None:
        broker = self._image.brokers.get(broker_id)
        if broker is not None and broker_id != self._node_id and not self._supervisor.stopped:
            self._supervisor.start(
                f"look at broker {broker_id}", self._look_at(broker_id, broker.broker_epoch)
            )

    async def _look_at(self, broker_id: int, broker_epoch: int) -> None:
        if not await self._has_ended(broker_id):
            return
        runtime = self._runtime()
        if runtime is not None:
            ending = runtime.submit(
                lambda machine, now_ms: machine.brokers.end_broker(broker_id, broker_epoch, now_ms)
            )
            ending.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _has_ended(self, broker_id: int) -> bool:
        request = newest_request_type(_API_VERSIONS_KEY)(
            client_software_name="ottla", client_software_version="0"
        )
        for _ in range(_ATTEMPTS):
            address = self._address_of(broker_id)
            if address is None:
                return False
            try:
                await self._peers.call(
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
