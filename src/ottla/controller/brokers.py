"""Brokers: registration, heartbeats, fencing, shutdown.

    (unknown) --register--> fenced <--------------+--- session expired, wants to be fenced,
        ^                     |                   |    or registered by a new incarnation
        |              heartbeat, caught up       |
    unregister                v                   |
        +------------------ active ---------------+
                              |
                     wants to shut down
                              v
                       in controlled shutdown   leads nothing any more; may stop

The sessions are what this controller has heard since it leads. They are not replicated: a new
controller gives every broker a whole session to be heard from.
"""

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from kio.static.primitive import i64

from ottla.controller.image import MetadataImage
from ottla.controller.partitions import changes_with_broker, changes_without_broker, leads_any
from ottla.controller.records import (
    FENCE,
    IN_CONTROLLED_SHUTDOWN,
    UNFENCE,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.machine.contract import Timers
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE


def validate_broker_epoch(
    image: MetadataImage, broker_id: int, broker_epoch: int
) -> RegisterBrokerRecord:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(ErrorCode.broker_id_not_registered, f"broker {broker_id} is not registered")
    if broker.broker_epoch != broker_epoch:
        raise ApiError(
            ErrorCode.stale_broker_epoch,
            f"broker {broker_id} has epoch {broker.broker_epoch}, not {broker_epoch}",
        )
    return broker


class BrokerControl:
    def __init__(
        self, image: MetadataImage, cluster_id: str, session_timeout_ms: int, timers: Timers
    ) -> None:
        self._image = image
        self._cluster_id = cluster_id
        self._session_timeout_ms = session_timeout_ms
        self._timers = timers
        self._heard: set[int] = set()  # Brokers that sent a heartbeat in their session.

    def on_loaded(self, now_ms: int) -> None:
        for broker in self._image.brokers.values():
            if not broker.fenced:
                self._schedule_expiry(broker.broker_id, now_ms)

    def register_broker(
        self, request: BrokerRegistrationRequest, next_offset: int
    ) -> Result[BrokerRegistrationResponse]:
        """The epoch of a broker is the offset of its registration, the first record of this."""
        if request.cluster_id != self._cluster_id:
            raise ApiError(
                ErrorCode.inconsistent_cluster_id,
                f"this is cluster {self._cluster_id}, not {request.cluster_id}",
            )
        present = self._image.brokers.get(request.broker_id)
        same = present is not None and present.incarnation_id == request.incarnation_id
        if present and not same and not present.fenced and present.broker_id in self._heard:
            raise ApiError(
                ErrorCode.duplicate_broker_registration,
                f"another broker with id {present.broker_id} is alive",
            )
        epoch = present.broker_epoch if present and same else i64(next_offset)
        records: list[MetadataRecord] = [_registration(request, epoch)]
        records.extend(changes_without_broker(self._image, request.broker_id))
        response = BrokerRegistrationResponse(
            throttle_time=NO_THROTTLE, error_code=ErrorCode.none, broker_epoch=epoch
        )
        return Result(response, tuple(records))

    def broker_heartbeat(
        self, request: BrokerHeartbeatRequest, now_ms: int
    ) -> Result[BrokerHeartbeatResponse]:
        broker = validate_broker_epoch(self._image, request.broker_id, request.broker_epoch)
        self._heard.add(broker.broker_id)
        self._schedule_expiry(broker.broker_id, now_ms)
        caught_up = request.current_metadata_offset >= broker.broker_epoch
        records: list[MetadataRecord] = []
        fenced = broker.fenced
        if request.want_shut_down:
            records = self._controlled_shutdown(broker)
        elif request.want_fence and not fenced:
            records, fenced = self._fence(broker), True
        elif fenced and caught_up and not request.want_fence:
            records, fenced = self._unfence(broker), False
        response = BrokerHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            is_caught_up=caught_up,
            is_fenced=fenced,
            should_shut_down=request.want_shut_down and not records,
        )
        return Result(response, tuple(records))

    def unregister_broker(
        self, request: UnregisterBrokerRequest
    ) -> Result[UnregisterBrokerResponse]:
        broker = self._image.brokers.get(request.broker_id)
        if broker is None:
            raise ApiError(
                ErrorCode.broker_id_not_registered, f"broker {request.broker_id} is not registered"
            )
        if not broker.fenced:
            raise ApiError(
                ErrorCode.invalid_request,
                f"broker {broker.broker_id} is running; stop it before it is unregistered",
            )
        response = UnregisterBrokerResponse(
            throttle_time=NO_THROTTLE, error_code=ErrorCode.none, error_message=None
        )
        return Result(
            response,
            (
                *changes_without_broker(self._image, broker.broker_id),
                UnregisterBrokerRecord(
                    broker_id=broker.broker_id, broker_epoch=broker.broker_epoch
                ),
            ),
        )

    def _schedule_expiry(self, broker_id: BrokerId, now_ms: int) -> None:
        self._timers.schedule(
            f"broker-session-{broker_id}",
            now_ms + self._session_timeout_ms,
            lambda _: self._expire_session(broker_id),
        )

    def _expire_session(self, broker_id: BrokerId) -> Result[None]:
        self._heard.discard(broker_id)
        broker = self._image.brokers.get(broker_id)
        if broker is None or broker.fenced:
            return Result(None)
        return Result(None, tuple(self._fence(broker)))

    def _fence(self, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, fenced=FENCE
        )
        return [change, *changes_without_broker(self._image, broker.broker_id)]

    def _unfence(self, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, fenced=UNFENCE
        )
        return [change, *changes_with_broker(self._image, broker.broker_id)]

    def _controlled_shutdown(self, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
        """Empty once there is nothing left to move."""
        if broker.in_controlled_shutdown and not leads_any(self._image, broker.broker_id):
            return []
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id,
            broker_epoch=broker.broker_epoch,
            in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN,
        )
        return [change, *changes_without_broker(self._image, broker.broker_id)]


def _registration(request: BrokerRegistrationRequest, epoch: i64) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(
            BrokerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ),
        features=tuple(
            BrokerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ),
        rack=request.rack,
        log_dirs=request.log_dirs,
    )
