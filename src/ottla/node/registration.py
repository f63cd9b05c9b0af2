"""This broker's membership of the cluster: registration and heartbeats."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Listener
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i16, i64, u16

from ottla.controller.features import supported_features
from ottla.network.endpoints import Endpoint
from ottla.protocol.errors import ApiError

logger = logging.getLogger(__name__)

_PLAINTEXT = i16(0)


class Registrar(Protocol):
    """The controller, as a broker sees it."""

    def register_broker(
        self, request: BrokerRegistrationRequest
    ) -> Awaitable[BrokerRegistrationResponse]: ...

    def broker_heartbeat(
        self, request: BrokerHeartbeatRequest
    ) -> Awaitable[BrokerHeartbeatResponse]: ...

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> Awaitable[AllocateProducerIdsResponse]: ...


class Registration:
    def __init__(
        self,
        registrar: Registrar,
        broker_id: int,
        cluster_id: str,
        incarnation_id: UUID,
        metadata_offset: Callable[[], int],
        heartbeat_interval_ms: int,
    ) -> None:
        self._registrar = registrar
        self._broker_id = BrokerId(broker_id)
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._metadata_offset = metadata_offset
        self._heartbeat_interval_s = heartbeat_interval_ms / 1000
        self.epoch = i64(-1)  # Before it is registered.

    async def register(self, advertised: Sequence[Endpoint], rack: str | None) -> None:
        response = await self._registrar.register_broker(
            BrokerRegistrationRequest(
                broker_id=self._broker_id,
                cluster_id=self._cluster_id,
                incarnation_id=self._incarnation_id,
                listeners=tuple(
                    Listener(
                        name=endpoint.listener_name,
                        host=endpoint.host,
                        port=u16(endpoint.port),
                        security_protocol=_PLAINTEXT,
                    )
                    for endpoint in advertised
                ),
                features=supported_features(),
                rack=rack,
            )
        )
        self.epoch = response.broker_epoch

    async def wait_until_unfenced(self) -> None:
        """Returns when the controller lets this broker serve."""
        heartbeat = await self._heartbeat()
        while heartbeat.is_fenced:
            await asyncio.sleep(self._heartbeat_interval_s)
            heartbeat = await self._heartbeat()

    async def keep_alive(self) -> None:
        """Heartbeats for as long as it runs."""
        while True:
            await asyncio.sleep(self._heartbeat_interval_s)
            try:
                await self._heartbeat()
            except ApiError as error:
                logger.warning("a heartbeat was refused: %s", error.message)

    def allocate_producer_ids(self) -> Awaitable[AllocateProducerIdsResponse]:
        return self._registrar.allocate_producer_ids(
            AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self.epoch)
        )

    async def _heartbeat(self) -> BrokerHeartbeatResponse:
        return await self._registrar.broker_heartbeat(
            BrokerHeartbeatRequest(
                broker_id=self._broker_id,
                broker_epoch=self.epoch,
                current_metadata_offset=i64(self._metadata_offset()),
                want_fence=False,
                want_shut_down=False,
            )
        )
