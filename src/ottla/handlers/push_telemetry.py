"""PushTelemetry (72): v0.

Accepts the metrics that a client was asked for (KIP-714). They are parsed in a thread, since there
may be many, and then shown on the broker's own page.
"""

from itertools import islice
from typing import Final
from uuid import UUID

from kio.schema.push_telemetry.v0.request import PushTelemetryRequest
from kio.schema.push_telemetry.v0.response import PushTelemetryResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.get_telemetry_subscriptions import description
from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.protocol.otlp import Sample, read_samples
from ottla.protocol.times import NO_THROTTLE
from ottla.records.compression import decompress
from ottla.records.errors import BatchTooLarge, RecordError
from ottla.runtime.client_metrics import SERIES_MAX

_EXPANSION_MAX: Final = 16  # Relative to the allowed compressed bytes.
_RESERVED: Final = (None, UUID(int=0), UUID(int=1))


async def handle(
    broker: Broker, context: RequestContext, request: PushTelemetryRequest
) -> PushTelemetryResponse:
    instance_id = request.client_instance_id
    if instance_id is None or instance_id in _RESERVED:
        raise ApiError(ErrorCode.invalid_request, "the id of the client instance is reserved")
    known = broker.client_metrics
    instance = known.accept(instance_id, lambda text: description(context, text), request)
    samples: list[Sample] = []
    if request.metrics:
        try:
            samples = await broker.process.loop.run_in_executor(
                broker.process.executor, _read, known.bytes_max, request
            )
        except ApiError as error:
            instance.last_error = error.code
            raise
    instance.last_error = ErrorCode.none
    known.keep(instance_id, context.client_id or "", instance, samples)
    return PushTelemetryResponse(throttle_time=NO_THROTTLE, error_code=ErrorCode.none)


def _read(bytes_max: int, request: PushTelemetryRequest) -> list[Sample]:
    try:
        limit = _EXPANSION_MAX * bytes_max
        data = decompress(request.metrics, request.compression_type, limit)
        return list(islice(read_samples(data), 2 * SERIES_MAX))
    except BatchTooLarge as error:  # After INVALID_RECORD a client never pushes again.
        raise ApiError(ErrorCode.telemetry_too_large, str(error)) from None
    except (RecordError, ProtocolError) as error:
        raise ApiError(ErrorCode.invalid_record, str(error)) from None
