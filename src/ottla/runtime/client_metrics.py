"""Metrics that clients are asked for and push (KIP-714).

A client instance is known by the id assigned with its first request. Instances are remembered while
there is room; the longest silent one is forgotten first, and starts over with its next request.
What it pushed is kept until it has been silent for several of its intervals, or has said that it
terminates.
"""

import base64
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ottla.controller.client_metrics import ClientDescription, Request, Subscription, request_of
from ottla.controller.image import CLIENT_METRICS_RESOURCE, MetadataImage
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.otlp import Sample
from ottla.records.compression import Compression
from ottla.records.crc import crc32c
from ottla.runtime.clock import Clock

if TYPE_CHECKING:
    from kio.schema.push_telemetry.v0.request import PushTelemetryRequest

INSTANCES_MAX: Final = 16_384
SERIES_MAX: Final = 500  # Per client.
_TEXT_MAX: Final = 200  # Characters in a name or label.
_LABELS_MAX: Final = 8  # Per metric.
_INTERVALS_KEPT: Final = 3
_NEVER_MS: Final = float("-inf")
# After these errors a client may ask for its subscription at once.
_COMPRESSION_TYPES: Final = frozenset(int(codec) for codec in Compression)
_ASK_AGAIN: Final = (ErrorCode.unknown_subscription_id, ErrorCode.unsupported_compression_type)

Series = tuple[str, tuple[tuple[str, str], ...]]  # A metric name and its labels.


@dataclass(slots=True)
class Pushed:
    """The metrics shown for one client."""

    instance_id: str
    client_id: str
    gauges: dict[Series, float] = field(default_factory=dict)
    counters: dict[Series, float] = field(default_factory=dict)
    kept_until_ms: float = 0.0


@dataclass(slots=True)
class Instance:
    request: Request
    subscription_id: int
    version: int  # Of the configs it was matched against.
    got_ms: float = _NEVER_MS
    pushed_ms: float = _NEVER_MS
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.none


class ClientMetrics:
    def __init__(
        self, image: MetadataImage, clock: Clock, *, bytes_max: int, clients_max: int
    ) -> None:
        """`clients_max` is how many clients' metrics are shown."""
        self.bytes_max = bytes_max
        self.pushed: dict[UUID, Pushed] = {}
        self.left_out_count = 0  # Pushes from clients beyond `clients_max`.
        self._image = image
        self._clock = clock
        self._clients_max = clients_max
        self._instances: OrderedDict[UUID, Instance] = OrderedDict()
        self._version = -1
        self._subscriptions: list[Subscription] = []

    def subscription(
        self, instance_id: UUID, describe: Callable[[str], ClientDescription]
    ) -> Instance:
        """What a client should send, for GetTelemetrySubscriptions. Raises ApiError."""
        instance, now_ms = self._instance(instance_id, describe), self._clock.monotonic_ms()
        if now_ms - max(instance.got_ms, instance.pushed_ms) >= instance.request.interval_ms:
            instance.got_ms = now_ms
        elif instance.last_error not in _ASK_AGAIN:
            raise _too_early()
        instance.last_error = ErrorCode.none
        return instance

    def accept(
        self,
        instance_id: UUID,
        describe: Callable[[str], ClientDescription],
        request: "PushTelemetryRequest",
    ) -> Instance:
        """Accept a push, which a client may make once per interval. Raises ApiError."""
        instance = self._instance(instance_id, describe)
        try:
            self._validate_push(instance, request)
        except ApiError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = request.terminating
        return instance

    def _validate_push(self, instance: Instance, request: "PushTelemetryRequest") -> None:
        now_ms, codec = self._clock.monotonic_ms(), request.compression_type
        if instance.is_terminating:
            raise ApiError(ErrorCode.invalid_request, "the client has said that it terminates")
        # The first push after a subscription comes at a random time in the interval.
        is_first = instance.got_ms > instance.pushed_ms
        if is_first or now_ms - instance.pushed_ms >= instance.request.interval_ms:
            instance.pushed_ms = now_ms
        elif not request.terminating:
            raise _too_early()
        if request.subscription_id != instance.subscription_id:
            raise ApiError(ErrorCode.unknown_subscription_id, "the subscription has changed")
        if codec not in _COMPRESSION_TYPES:
            raise ApiError(ErrorCode.unsupported_compression_type, f"no compression type {codec}")
        if len(request.metrics) > self.bytes_max:
            raise ApiError(ErrorCode.telemetry_too_large, f"more than {self.bytes_max} bytes")

    def keep(
        self, instance_id: UUID, client_id: str, instance: Instance, samples: Iterable[Sample]
    ) -> None:
        now_ms = self._clock.monotonic_ms()
        self._forget_silent(now_ms)
        if instance.is_terminating:
            self.pushed.pop(instance_id, None)
            return
        pushed = self.pushed.get(instance_id)
        if pushed is None:
            if len(self.pushed) >= self._clients_max:
                self.left_out_count += 1
                return
            pushed = Pushed(instance_text(instance_id), client_id[:_TEXT_MAX])
            self.pushed[instance_id] = pushed
        pushed.kept_until_ms = now_ms + _INTERVALS_KEPT * instance.request.interval_ms
        for sample in samples:
            _keep(pushed, sample)

    def shown(self) -> list[Pushed]:
        """The clients heard from recently; callable from any thread."""
        now_ms = self._clock.monotonic_ms()
        return [push for push in list(self.pushed.values()) if push.kept_until_ms > now_ms]

    def _forget_silent(self, now_ms: float) -> None:
        for instance_id in [
            key for key, push in self.pushed.items() if push.kept_until_ms <= now_ms
        ]:
            del self.pushed[instance_id]

    def _instance(
        self, instance_id: UUID, describe: Callable[[str], ClientDescription]
    ) -> Instance:
        known, version = self._instances.get(instance_id), self._image.configs_version
        if known is not None:
            self._instances.move_to_end(instance_id)
            if known.version == version:
                return known
        self._load(version)
        request = request_of(self._subscriptions, describe(instance_text(instance_id)))
        if known is not None and known.request == request:
            known.version = version
            return known
        instance = Instance(request, _subscription_id(instance_id, request), version)
        self._instances[instance_id] = instance
        if len(self._instances) > INSTANCES_MAX:
            self._instances.popitem(last=False)
        return instance

    def _load(self, version: int) -> None:
        if version != self._version:
            self._version = version
            self._subscriptions = [
                Subscription.of(values)
                for (resource_type, _), values in sorted(self._image.configs.items())
                if resource_type == CLIENT_METRICS_RESOURCE
            ]


def instance_text(instance_id: UUID) -> str:
    """The id as Kafka writes it."""
    return base64.urlsafe_b64encode(instance_id.bytes).decode().rstrip("=")


def _keep(pushed: Pushed, sample: Sample) -> None:
    labels = [(key[:_TEXT_MAX], text[:_TEXT_MAX]) for key, text in sample.attributes[:_LABELS_MAX]]
    series = (sample.name[:_TEXT_MAX], tuple(labels))
    values = pushed.counters if sample.is_monotonic else pushed.gauges
    if series in values:
        values[series] = values[series] + sample.value if sample.is_delta else sample.value
    elif len(pushed.gauges) + len(pushed.counters) < SERIES_MAX:
        values[series] = sample.value


def _subscription_id(instance_id: UUID, request: Request) -> int:
    """Differs between requests, and is the same on every broker."""
    checksum = crc32c(repr(request).encode() + instance_id.bytes)
    return int.from_bytes(checksum.to_bytes(4, "big"), "big", signed=True)


def _too_early() -> ApiError:
    return ApiError(ErrorCode.throttling_quota_exceeded, "earlier than the interval allows")
