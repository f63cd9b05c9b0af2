"""The other brokers of the cluster: their addresses, and requests to them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from ottla.controller.image import MetadataImage
from ottla.controller.records import FENCE, BrokerRegistrationChangeRecord, RegisterBrokerRecord
from ottla.network.peers import Peers, PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ApiError, ErrorCode

TIMEOUT_MS: Final = 4_000  # Longer than a broker waits for markers to be committed.

# Sends a request to the broker with this id; ApiError if no response came.
AskBroker = Callable[[int, Any], Awaitable[Any]]


class OtherBrokers:
    def __init__(self, image: MetadataImage, peers: Peers, listener_name: str) -> None:
        """`listener_name` is the listener that brokers use among themselves."""
        self._image = image
        self._peers = peers
        self._listener_name = listener_name

    def address_of(self, broker_id: int) -> Address | None:
        """The broker's listener with the common name, or its first."""
        broker = self._image.brokers.get(broker_id)
        if broker is None or not broker.end_points:
            return None
        named = [point for point in broker.end_points if point.name == self._listener_name]
        end_point = (named or broker.end_points)[0]
        return Address(end_point.host, int(end_point.port))

    def asking(self, purpose: str, timeout_ms: float = TIMEOUT_MS) -> AskBroker:
        """Sends the newest version of each request; each purpose has its own connections."""
        return partial(self._ask, purpose, timeout_ms)

    async def _ask(self, purpose: str, timeout_ms: float, broker_id: int, request: Any) -> Any:
        address = self.address_of(broker_id)
        if address is None:
            message = f"broker {broker_id} has no address"
            raise ApiError(ErrorCode.coordinator_not_available, message)
        try:
            return await self._peers.call(address, request, timeout_ms=timeout_ms, purpose=purpose)
        except PeerUnreachable as error:
            raise ApiError(ErrorCode.coordinator_not_available, str(error)) from error

    def on_record(self, record: object, _: MetadataImage) -> None:
        """A broker that returns is contacted at once."""
        if not isinstance(record, RegisterBrokerRecord | BrokerRegistrationChangeRecord):
            return
        goes = isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == FENCE
        address = None if goes else self.address_of(record.broker_id)
        if address is not None:
            self._peers.expect(address)
