"""This broker's membership of the cluster: registration and heartbeats."""

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Listener
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i16, i64, u16

from ottla.controller.config import BROKER_SESSION_TIMEOUT_MS
from ottla.controller.features import supported_features
from ottla.controller.image import MetadataImage
from ottla.network.endpoints import Endpoint
from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.runtime.controller import Controller

if TYPE_CHECKING:
    from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse

logger = logging.getLogger(__name__)

_NO_PROTOCOLS: Mapping[str, int] = {}
_FORGOTTEN = (ErrorCode.broker_id_not_registered, ErrorCode.stale_broker_epoch)
_NO_CONTROLLER = (ErrorCode.not_controller, ErrorCode.request_timed_out)
SESSIONS_WAITED = 2  # For the session of this broker's previous run to end.
_UNFENCED_RETRY_S = 0.05
_ALONE_BEATS = 3  # In each session of a broker that is alone in its cluster.
_LEAVING_HASTE = 4  # The speed-up of heartbeats while the broker waits to stop.


class BrokerIdentity(NamedTuple):
    broker_id: int
    cluster_id: str
    incarnation_id: UUID  # Of this run of the broker.
    log_dirs: tuple[UUID, ...]
    previous_epoch: int  # Of the last run, if none of its data is lost; otherwise -1.


def alone_interval(values: ConfigValues, image: MetadataImage, node_id: int) -> Callable[[], float]:
    """The heartbeat interval in milliseconds while the cluster has no other broker; otherwise 0.

    Such a broker is its own controller, and no one could take over from it.
    """
    interval_ms = values[BROKER_SESSION_TIMEOUT_MS] / _ALONE_BEATS
    return lambda: interval_ms if image.brokers.keys() == {node_id} else 0


class Registration:
    """`on_epoch` is called with each epoch that this broker gets."""

    def __init__(
        self,
        *,
        controller: Controller,
        identity: BrokerIdentity,
        metadata_offset: Callable[[], int],
        heartbeat_interval_ms: int,
        on_epoch: Callable[[int], object],
        offline_log_dirs: Callable[[], Iterable[UUID]] = tuple,
        full_log_dirs: Callable[[], Iterable[UUID]] = tuple,
        alone_interval_ms: Callable[[], float] = lambda: 0,
    ) -> None:
        self._controller = controller
        self._identity = identity
        self._broker_id = BrokerId(identity.broker_id)
        self._metadata_offset = metadata_offset
        self._heartbeat_interval_s = heartbeat_interval_ms / 1000
        self._alone_interval_ms = alone_interval_ms
        self._on_epoch = on_epoch
        self._request: BrokerRegistrationRequest | None = None
        self._leaves = False
        self._offline_log_dirs = offline_log_dirs
        self._full_log_dirs = full_log_dirs
        self._hurry = asyncio.Event()
        self._in_touch_at_s = -math.inf
        self._reported: str | None = None  # Why the last heartbeat failed; None if it succeeded.
        self.epoch = i64(-1)  # Before it is registered.

    async def register(
        self,
        advertised: Sequence[Endpoint],
        rack: str | None,
        patience_s: float = math.inf,
        protocols: Mapping[str, int] = _NO_PROTOCOLS,
    ) -> None:
        """Returns when the cluster knows this broker. ApiError if it is rejected.

        There may be no controller yet, and the session of the broker's previous run may have to end
        first: `patience_s` limits that wait. `protocols` are the numbers of the listeners' security
        protocols, if they are not PLAINTEXT.
        """
        self._request = _registration_request(self._identity, advertised, rack, protocols)
        waited_s = 0.0
        while True:
            try:
                await self._register(self._request)
                return
            except ApiError as error:
                if error.code is ErrorCode.duplicate_broker_registration:
                    if waited_s >= patience_s:
                        raise self._taken() from error
                    waited_s += self._heartbeat_interval_s
                elif error.code not in _NO_CONTROLLER:
                    raise
                logger.info("waiting to register: %s", error.message or "the id is in use")
            await asyncio.sleep(self._heartbeat_interval_s)

    def _taken(self) -> ApiError:
        return ApiError(
            ErrorCode.duplicate_broker_registration,
            f"node id {self._broker_id} is taken by a node that is alive; give this one another id",
        )

    async def wait_until_unfenced(self) -> None:
        """Returns when the controller lets this broker serve."""
        fenced = await self._beat()
        while fenced:
            await asyncio.sleep(min(_UNFENCED_RETRY_S, self._heartbeat_interval_s))
            fenced = await self._beat()

    async def keep_alive(self) -> None:
        """Sends heartbeats for as long as it runs; a forgotten broker registers again."""
        while True:
            # Not `wait_for`, which before Python 3.12 continues if it is cancelled too late.
            interval_s = max(self._heartbeat_interval_s, self._alone_interval_ms() / 1000)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(interval_s):
                    await self._hurry.wait()
            self._hurry.clear()
            await self._beat()

    @property
    def silence_s(self) -> float:
        """Time since the last answered heartbeat was sent."""
        return asyncio.get_running_loop().time() - self._in_touch_at_s

    def hurry(self) -> None:
        """Send a heartbeat now."""
        self._hurry.set()

    async def _beat(self) -> bool:
        """Whether the broker is fenced, as far as it knows."""
        try:
            try:
                is_fenced = (await self._heartbeat()).is_fenced
            except ApiError as error:
                if error.code not in _FORGOTTEN or self._request is None or self._leaves:
                    raise
                logger.warning("registering again: %s", error.message or error.code.name)
                await self._register(self._request)
                is_fenced = True
        except ApiError as error:
            self._tell(error)
            return True
        if self._reported is not None:
            self._reported = None
            logger.info("the controller answers heartbeats again")
        return is_fenced

    def _tell(self, error: ApiError) -> None:
        """Log each kind of failure once, however often it occurs in a row."""
        kind = "had no answer" if error.code in _NO_CONTROLLER else "was refused by the controller"
        if kind != self._reported:
            self._reported = kind
            reason = error.message or error.code.name
            logger.warning("a heartbeat of this broker %s: %s", kind, reason)

    async def leave(self) -> None:
        """Returns when this broker no longer leads anything and the others know it."""
        if self._request is None:
            return
        self._leaves = True
        try:
            heartbeat = await self._heartbeat()
            while not heartbeat.should_shut_down:
                await asyncio.sleep(self._heartbeat_interval_s / _LEAVING_HASTE)
                heartbeat = await self._heartbeat()
        except ApiError as error:
            logger.warning("stopping without handing over: %s", error.message or error.code.name)

    def allocate_producer_ids(self) -> "Awaitable[AllocateProducerIdsResponse]":
        from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest

        return self._controller.call(
            AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self.epoch)
        )

    async def _register(self, request: BrokerRegistrationRequest) -> None:
        response: BrokerRegistrationResponse = await self._controller.call(request)
        self.epoch = response.broker_epoch
        self._on_epoch(self.epoch)

    async def _heartbeat(self) -> BrokerHeartbeatResponse:
        sent_at_s = asyncio.get_running_loop().time()
        response: BrokerHeartbeatResponse = await self._controller.call(
            BrokerHeartbeatRequest(
                broker_id=self._broker_id,
                broker_epoch=self.epoch,
                current_metadata_offset=i64(self._metadata_offset()),
                want_fence=False,
                want_shut_down=self._leaves,
                offline_log_dirs=tuple(self._offline_log_dirs()),
                cordoned_log_dirs=tuple(self._full_log_dirs()) or None,
            )
        )
        self._in_touch_at_s = sent_at_s
        return response


def _registration_request(
    identity: BrokerIdentity,
    advertised: Sequence[Endpoint],
    rack: str | None,
    protocols: Mapping[str, int],
) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=BrokerId(identity.broker_id),
        cluster_id=identity.cluster_id,
        incarnation_id=identity.incarnation_id,
        listeners=tuple(
            Listener(
                name=endpoint.listener_name,
                host=endpoint.host,
                port=u16(endpoint.port),
                security_protocol=i16(protocols.get(endpoint.listener_name, 0)),
            )
            for endpoint in advertised
        ),
        features=supported_features(),
        rack=rack,
        log_dirs=identity.log_dirs,
        previous_broker_epoch=i64(identity.previous_epoch),
    )
