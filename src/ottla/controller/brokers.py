"""Brokers: registration, heartbeats, fencing, shutdown.

    (unknown) --register--> fenced <--------------+--- session expired, wants to be fenced, has
        ^                     |                   |    shut down, or a new incarnation registered
        |              heartbeat, caught up       |
    unregister                v                   |
        +------ (fenced)    active ---------------+
                              |                   |
                     wants to shut down           |
                              v                   |
                    in controlled shutdown -------+

A broker that wants to shut down first loses its partitions. It may stop, and is fenced, once the
other brokers know that it leads nothing; only a new incarnation can return from there.

A heartbeat that names full log directories (in the field for cordoned ones: the operator's cordons
are in the metadata) takes the broker out of the in-sync sets there, until one does not.

A broker that loses thousands of partitions loses them in steps, since an operation blocks all
others.
"""

from collections.abc import Container, Iterable, Iterator
from itertools import islice
from typing import Any, Final
from uuid import UUID

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from kio.static.primitive import i64

from ottla.controller.broker_sessions import BrokerSessions
from ottla.controller.directories import directory_of
from ottla.controller.elections import ElectionControl
from ottla.controller.features import validate_broker_features
from ottla.controller.image import BROKER_RESOURCE, MetadataImage
from ottla.controller.leadership import Leadership
from ottla.controller.partition_change import Departure
from ottla.controller.partition_index import PartitionIndex
from ottla.controller.records import (
    FENCE,
    IN_CONTROLLED_SHUTDOWN,
    UNFENCE,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.machine.contract import Timers
from ottla.machine.result import Completion, Deferred, Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

PARTITIONS_PER_STEP: Final = 2000


def validate_broker_epoch(
    image: MetadataImage, broker_id: int, broker_epoch: int
) -> RegisterBrokerRecord:
    broker = _find(image, broker_id)
    if broker.broker_epoch != broker_epoch:
        raise ApiError(
            ErrorCode.stale_broker_epoch,
            f"broker {broker_id} has epoch {broker.broker_epoch}, not {broker_epoch}",
        )
    return broker


class BrokerControl:
    def __init__(
        self,
        *,
        image: MetadataImage,
        index: PartitionIndex,
        leadership: Leadership,
        elections: ElectionControl,
        cluster_id: str,
        session_timeout_ms: int,
        timers: Timers,
    ) -> None:
        self._image = image
        self._index = index
        self._leadership = leadership
        self._elections = elections
        self._cluster_id = cluster_id
        self._sessions = BrokerSessions(session_timeout_ms, timers, self._expire_session)

    def on_loaded(self, now_ms: int) -> None:
        for broker in self._image.brokers.values():
            if not broker.fenced:
                self._sessions.await_first(broker.broker_id, now_ms)

    def register_broker(
        self, request: BrokerRegistrationRequest, next_offset: int
    ) -> Result[BrokerRegistrationResponse]:
        """A broker's epoch is the offset of its registration, the first of these records."""
        if request.cluster_id != self._cluster_id:
            raise ApiError(
                ErrorCode.inconsistent_cluster_id,
                f"this is cluster {self._cluster_id}, not {request.cluster_id}",
            )
        validate_broker_features(self._image, request.features)
        present = self._image.brokers.get(request.broker_id)
        records: list[MetadataRecord]
        if present is not None and present.incarnation_id == request.incarnation_id:
            registration = _registration(request, present.broker_epoch, present)
            records = [registration]
        else:
            registration = _registration(request, i64(next_offset), None)
            records = [registration, *self._replace(present, request)]
        response = BrokerRegistrationResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            broker_epoch=registration.broker_epoch,
        )
        cause = f"node {request.broker_id} registered as a new process"
        return Result(response, tuple(records), cause=cause)

    def broker_heartbeat(
        self, request: BrokerHeartbeatRequest, now_ms: int, next_offset: int
    ) -> Result[BrokerHeartbeatResponse]:
        broker = validate_broker_epoch(self._image, request.broker_id, request.broker_epoch)
        answer: Deferred[object] = Deferred()
        offset = request.current_metadata_offset
        self._sessions.touch(broker.broker_id, offset, answer, now_ms)
        result = self._hear(broker, request, now_ms, next_offset)
        return result._replace(completions=(Completion(answer, result.response),))

    def _hear(
        self,
        broker: RegisterBrokerRecord,
        request: BrokerHeartbeatRequest,
        now_ms: int,
        next_offset: int,
    ) -> Result[BrokerHeartbeatResponse]:
        self._leadership.leaving.discard(broker.broker_id)
        caught_up = request.current_metadata_offset >= broker.broker_epoch
        if not set(broker.log_dirs).isdisjoint(request.offline_log_dirs):
            return self._without_directories(broker, request, caught_up=caught_up)
        self._leadership.note_full_directories(broker.broker_id, request.cordoned_log_dirs)
        records: list[MetadataRecord] = []
        should_shut_down = False
        cause = f"node {broker.broker_id} is stopping"
        if broker.fenced:
            should_shut_down = request.want_shut_down
            wants_back = not request.want_fence and not request.want_shut_down
            if caught_up and wants_back and not broker.in_controlled_shutdown:
                records = self._unfence(broker, now_ms)
                cause = f"node {broker.broker_id} is active: it has read the metadata"
        elif request.want_fence:
            records = self._fence(broker)
            cause = f"node {broker.broker_id} is fenced at its own request"
            should_shut_down = request.want_shut_down and _fences(records)
        elif request.want_shut_down:
            records = self._shut_down(broker, next_offset)
            should_shut_down = _fences(records)
            if should_shut_down:
                cause = f"node {broker.broker_id} is fenced: it leads nothing and may stop"
        elif request.cordoned_log_dirs:
            records = list(islice(self._moves_to_room(broker), PARTITIONS_PER_STEP))
            cause = f"node {broker.broker_id} has a full log directory"
        response = BrokerHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            is_caught_up=caught_up,
            is_fenced=_fences(records) or (broker.fenced and not records),
            should_shut_down=should_shut_down,
        )
        return Result(response, tuple(records), cause=cause)

    def _without_directories(
        self, broker: RegisterBrokerRecord, request: BrokerHeartbeatRequest, *, caught_up: bool
    ) -> Result[BrokerHeartbeatResponse]:
        """Its replicas there lose leadership; the last step removes the directories.

        They may return with all their data when the broker registers again. A broker without any
        directory left has nothing, and is fenced.
        """
        left = tuple(
            directory for directory in broker.log_dirs if directory not in request.offline_log_dirs
        )
        if not left:
            records = self._fence(broker)
        else:
            moves = self._moves_from(broker, request.offline_log_dirs)
            records = list(islice(moves, PARTITIONS_PER_STEP))
            if next(moves, None) is None:
                records.insert(0, _change(broker, log_dirs=left))
        response = BrokerHeartbeatResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            is_caught_up=caught_up,
            is_fenced=broker.fenced or _fences(records),
            should_shut_down=False,
        )
        cause = f"node {broker.broker_id} has lost a log directory"
        return Result(response, tuple(records), cause=cause)

    def suspect_broker(self, broker_id: int, now_ms: int) -> Result[None]:
        """Its connection has ended: it must be heard from soon, or it counts as dead."""
        self._sessions.suspect(broker_id, now_ms)
        return Result(None)

    def end_broker(self, broker_id: int, broker_epoch: int, now_ms: int) -> Result[None]:
        """Its process has ended, if this is still its epoch."""
        broker = self._image.brokers.get(broker_id)
        if broker is None or broker.broker_epoch != broker_epoch:
            return Result(None)
        self._sessions.forget(broker_id)
        return self._expire_session(broker_id, now_ms, "its process has ended")

    def unregister_broker(
        self, request: UnregisterBrokerRequest
    ) -> Result[UnregisterBrokerResponse]:
        """Nothing is known about its disk afterwards, so it is no longer an eligible leader.

        Its configs are removed as well: the next broker with that id is another one.
        """
        broker = _find(self._image, request.broker_id)
        if not broker.fenced:
            raise ApiError(
                ErrorCode.invalid_request,
                f"broker {broker.broker_id} is running; stop it before it is unregistered",
            )
        self._sessions.forget(broker.broker_id)
        self._leadership.forget(broker.broker_id)
        response = UnregisterBrokerResponse(
            throttle_time=NO_THROTTLE, error_code=ErrorCode.none, error_message=None
        )
        return Result(
            response,
            (
                *self._moves(broker.broker_id, Departure.LOST),
                *_without_configs(self._image, broker.broker_id),
                UnregisterBrokerRecord(
                    broker_id=broker.broker_id, broker_epoch=broker.broker_epoch
                ),
            ),
            cause=f"node {broker.broker_id} was unregistered",
        )

    def _replace(
        self, present: RegisterBrokerRecord | None, request: BrokerRegistrationRequest
    ) -> Iterable[PartitionChangeRecord]:
        """Replace the present incarnation by a new one, unless it is alive."""
        if present is None:
            return ()
        if not present.fenced and self._sessions.is_alive(present.broker_id):
            raise ApiError(
                ErrorCode.duplicate_broker_registration,
                f"another broker with id {present.broker_id} is alive",
            )
        self._sessions.forget(present.broker_id)
        self._leadership.forget(present.broker_id)
        return self._moves(present.broker_id, _departure(present, request))

    def _expire_session(self, broker_id: int, now_ms: int, cause: str) -> Result[None]:
        broker = self._image.brokers.get(broker_id)
        if broker is None or broker.fenced:
            return Result(None)
        records = self._fence(broker)
        if not _fences(records):
            self._sessions.expire_again(broker_id, now_ms, cause)
        return Result(None, tuple(records), cause=f"node {broker_id} is fenced: {cause}")

    def _fence(self, broker: RegisterBrokerRecord) -> list[MetadataRecord]:
        """Fence it in the last step, and before its partitions change.

        Otherwise their leaders would consider it back in sync.
        """
        moves = self._moves(broker.broker_id, Departure.INTACT)
        records: list[MetadataRecord] = list(islice(moves, PARTITIONS_PER_STEP))
        if next(moves, None) is not None:
            self._leadership.leaving.add(broker.broker_id)
            return records
        self._leadership.leaving.discard(broker.broker_id)
        return [_change(broker, fenced=FENCE), *records]

    def _unfence(self, broker: RegisterBrokerRecord, now_ms: int) -> list[MetadataRecord]:
        change = _change(broker, fenced=UNFENCE)
        elected = self._elections.elect_with(broker.broker_id)
        records: list[MetadataRecord] = [change, *islice(elected, PARTITIONS_PER_STEP)]
        if next(elected, None) is not None:
            self._elections.elect_soon(now_ms)
        return records

    def _shut_down(self, broker: RegisterBrokerRecord, next_offset: int) -> list[MetadataRecord]:
        """Fence the broker, so that it may stop, once no other considers it a leader."""
        broker_id = broker.broker_id
        records: list[MetadataRecord] = []
        if self._index.leads_any(broker_id):
            if not broker.in_controlled_shutdown:
                records.append(_change(broker, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN))
            moves = self._moves(broker_id, Departure.INTACT)
            records.extend(islice(moves, PARTITIONS_PER_STEP))
            self._sessions.set_shutdown_offset(broker_id, next_offset + len(records) - 1)
            return records
        others = (other.broker_id for other in self._image.active_brokers())
        if self._sessions.is_shutdown_known(
            broker_id, (other for other in others if other != broker_id)
        ):
            return self._fence(broker)
        return []

    def _moves(self, broker_id: int, departure: Departure) -> Iterator[PartitionChangeRecord]:
        """The changes that take the broker out of its partitions."""
        is_intact = departure is Departure.INTACT
        find = self._index.in_sync if is_intact else self._index.in_sync_or_eligible
        return self._removals(broker_id, find(broker_id), departure)

    def _moves_from(
        self, broker: RegisterBrokerRecord, offline: Container[UUID | None]
    ) -> Iterator[MetadataRecord]:
        """The changes that take some directories of a broker out of service."""
        broker_id = broker.broker_id
        lost = (
            partition
            for partition in self._index.in_sync(broker_id)
            if directory_of(partition, broker_id) in offline
        )
        return self._removals(broker_id, lost, Departure.INTACT)

    def _moves_to_room(self, broker: RegisterBrokerRecord) -> Iterator[MetadataRecord]:
        """The changes that take its full directories out of service, where others have room.

        An in-sync replica that cannot take records would hold up the others. Partitions that no
        other replica can lead stay, to be read.
        """
        leadership, broker_id = self._leadership, broker.broker_id
        stuck = (
            partition
            for partition in self._index.in_sync(broker_id)
            if not leadership.has_room(partition, broker_id)
            and any(
                leadership.is_active(other) and leadership.has_room(partition, other)
                for other in partition.isr
            )
        )
        return self._removals(broker_id, stuck, Departure.INTACT)

    def _removals(
        self, broker_id: int, partitions: Iterable[PartitionRecord], departure: Departure
    ) -> Iterator[PartitionChangeRecord]:
        for partition in partitions:
            change = self._leadership.change(partition)
            change.remove(broker_id, departure)
            yield from change.records()


def _find(image: MetadataImage, broker_id: int) -> RegisterBrokerRecord:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(ErrorCode.broker_id_not_registered, f"broker {broker_id} is not registered")
    return broker


def _without_configs(image: MetadataImage, broker_id: int) -> Iterator[ConfigRecord]:
    for name in image.broker_configs(broker_id):
        yield ConfigRecord(
            resource_type=BROKER_RESOURCE, resource_name=str(broker_id), name=name, value=None
        )


def _change(broker: RegisterBrokerRecord, **changes: Any) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, **changes
    )


def _fences(records: list[MetadataRecord]) -> bool:
    first = records[0] if records else None
    return isinstance(first, BrokerRegistrationChangeRecord) and first.fenced == FENCE


def _departure(present: RegisterBrokerRecord, request: BrokerRegistrationRequest) -> Departure:
    """What the new incarnation reports about the disk of the previous one (KIP-966)."""
    if present.log_dirs and not set(present.log_dirs) & set(request.log_dirs):
        return Departure.LOST
    if request.previous_broker_epoch == present.broker_epoch:
        return Departure.INTACT
    return Departure.UNCLEAN


def _registration(
    request: BrokerRegistrationRequest, epoch: i64, same: RegisterBrokerRecord | None
) -> RegisterBrokerRecord:
    """`same` is the registration to update."""
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
        fenced=same is None or same.fenced,
        in_controlled_shutdown=same is not None and same.in_controlled_shutdown,
        log_dirs=request.log_dirs,
    )
