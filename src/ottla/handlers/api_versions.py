"""ApiVersions (18): v0-v5.

Lists the APIs of the dispatch table with their versions, and the features.

v1  throttle time in the response
v3  flexible; the client says its name and version (KIP-511); features (KIP-584)
v4  a feature may start at level 0 (KIP-1022)
v5  the client names the broker that it means to reach (KIP-1242); another one refuses it

An unsupported version gets a v0 body with UNSUPPORTED_VERSION and this API's range, so that the
client can ask again.
"""

import functools
import re

from kio.schema.api_versions.v4.response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kio.static.primitive import i16, i64

from ottla.controller.features import FEATURES, finalized_levels
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import API_VERSIONS_KEY
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.times import NO_THROTTLE

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
SOFTWARE_FROM_VERSION = 3
_NO_NODE = -1

SUPPORTED_FEATURES = tuple(
    SupportedFeatureKey(name=name, min_version=feature.low, max_version=feature.high)
    for name, feature in FEATURES.items()
)


def handle(
    broker: Broker, context: RequestContext, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    if context.api_version >= SOFTWARE_FROM_VERSION:
        _validate_software(request.client_software_name, "name")
        _validate_software(request.client_software_version, "version")
        context.session.client_software_name = request.client_software_name
        context.session.client_software_version = request.client_software_version
    _validate_destination(broker, request)
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=_api_keys(tuple(broker.settings.api_versions.items())),
        throttle_time=NO_THROTTLE,
        supported_features=SUPPORTED_FEATURES,
        finalized_features_epoch=i64(broker.metadata_end_offset()),
        finalized_features=_finalized(tuple(finalized_levels(broker.image).items())),
    )


def unsupported_version_response(low: int, high: int) -> ApiVersionsResponse:
    """The response to a client that asked with a version outside `low` to `high`."""
    return ApiVersionsResponse(
        error_code=ErrorCode.unsupported_version,
        api_keys=(_api_version(API_VERSIONS_KEY, low, high),),
        throttle_time=NO_THROTTLE,
    )


# Every connection begins with this request, and the response hardly ever changes.
@functools.lru_cache(maxsize=8)
def _api_keys(versions: tuple[tuple[int, tuple[int, int]], ...]) -> tuple[ApiVersion, ...]:
    return tuple(_api_version(key, low, high) for key, (low, high) in versions)


@functools.lru_cache(maxsize=8)
def _finalized(levels: tuple[tuple[str, i16], ...]) -> tuple[FinalizedFeatureKey, ...]:
    return tuple(
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in levels
    )


def _api_version(key: int, low: int, high: int) -> ApiVersion:
    return ApiVersion(api_key=i16(key), min_version=i16(low), max_version=i16(high))


def _validate_destination(broker: Broker, request: ApiVersionsRequest) -> None:
    """A client with outdated addresses may have reached another cluster or another broker."""
    cluster_id, node_id = request.cluster_id, request.node_id
    if (cluster_id is None) != (node_id == _NO_NODE):
        raise ApiError(ErrorCode.invalid_request, "cluster id and node id go together")
    if cluster_id is not None and (cluster_id, node_id) != (broker.cluster_id, broker.node_id):
        raise ApiError(
            ErrorCode.rebootstrap_required,
            f"this is node {broker.node_id} of cluster {broker.cluster_id},"
            f" not node {node_id} of cluster {cluster_id}",
        )


def _validate_software(text: str, what: str) -> None:
    if not _SOFTWARE.fullmatch(text):
        raise ApiError(ErrorCode.invalid_request, f"{text!r} is no {what} of a client's software")
