"""How a node leaves its cluster before it stops: others take over its leadership.

It is a courtesy to clients. Nothing is lost without it, so it ends if no one can take over, and
does not wait long for a controller that may not come: all nodes may be stopping.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from ottla.controller.image import MetadataImage
from ottla.network.peers import Peers
from ottla.protocol.addresses import Address
from ottla.protocol.lazy_dataclass import dataclass
from ottla.runtime.leadership import Leadership

logger = logging.getLogger(__name__)

NO_CONTROLLER_TIMEOUT_S: Final = 1.0
_LOOK_S: Final = 0.05


@dataclass(slots=True, eq=False)
class Remaining:
    """The other brokers while nodes stop. One whose process has ended does not count, whatever the
    metadata says: there may be no controller to change it."""

    node_id: int
    leadership: Leadership
    image: MetadataImage
    peers: Peers
    address_of: Callable[[int], Address | None]

    def others(self) -> bool:
        """Whether another broker could take over."""
        return any(
            broker.broker_id != self.node_id and not self._has_ended(broker.broker_id)
            for broker in self.image.active_brokers()
        )

    def controller(self) -> bool:
        address = self.leadership.address
        has_ended = address is not None and self.peers.is_refused(address)
        return self.leadership.leader_id is not None and not has_ended

    def _has_ended(self, broker_id: int) -> bool:
        address = self.address_of(broker_id)
        return address is not None and self.peers.is_refused(address)


async def leave_in_order(
    leave: Callable[[], Awaitable[None]],
    is_needed: Callable[[], bool],
    has_controller: Callable[[], bool],
    timeout_s: float,
) -> None:
    """`leave` returns when this node may stop; `is_needed`: another could take over."""
    if not is_needed():
        return
    loop = asyncio.get_running_loop()
    leaving = asyncio.ensure_future(leave())
    end = loop.time() + timeout_s
    controller_seen = loop.time()
    while not leaving.done() and is_needed():
        await asyncio.wait([leaving], timeout=_LOOK_S)
        now = loop.time()
        if has_controller():
            controller_seen = now
        if now - controller_seen > NO_CONTROLLER_TIMEOUT_S:
            logger.warning("stopping without handing over: the cluster has no controller now")
            break
        if now > end:
            logger.warning(
                "stopping without handing over: no other node took over within %.1f s", timeout_s
            )
            break
    if leaving.done():
        leaving.result()
    else:
        leaving.cancel()
