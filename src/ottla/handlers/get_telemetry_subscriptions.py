"""GetTelemetrySubscriptions (71): v0.

Assigns an id to a client, and tells which metrics it should push, and how often (KIP-714): none if
no subscription matches the client.
"""

from kio.schema.get_telemetry_subscriptions.v0.request import GetTelemetrySubscriptionsRequest
from kio.schema.get_telemetry_subscriptions.v0.response import GetTelemetrySubscriptionsResponse
from kio.static.primitive import i8, i32

from ottla.controller.client_metrics import ClientDescription
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE, milliseconds
from ottla.records.compression import Compression

# The one omitted, no compression, is always accepted.
_COMPRESSION_TYPES = tuple(
    i8(codec) for codec in (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
)


def handle(
    broker: Broker, context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    instance_id = request.client_instance_id or broker.new_uuid()
    instance = broker.client_metrics.subscription(
        instance_id, lambda text: description(context, text)
    )
    return GetTelemetrySubscriptionsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        client_instance_id=instance_id,
        subscription_id=i32(instance.subscription_id),
        accepted_compression_types=_COMPRESSION_TYPES,
        push_interval=milliseconds(instance.request.interval_ms),
        telemetry_max_bytes=i32(broker.client_metrics.bytes_max),
        delta_temporality=True,
        requested_metrics=instance.request.metrics,
    )


def description(context: RequestContext, instance_id: str) -> ClientDescription:
    session = context.session
    return ClientDescription(
        instance_id,
        context.client_id or "",
        session.client_software_name or "",
        session.client_software_version or "",
        session.peer_address,
        str(session.peer_port),
    )
