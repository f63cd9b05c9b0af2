"""ApiVersions: see the package. Kafka 4.4's request; its response is that of v4."""

from dataclasses import field
from typing import ClassVar

from kio.schema.api_versions.v4 import request as api_versions_request
from kio.schema.api_versions.v4.response import ApiVersionsResponse
from kio.static.primitive import i16, i32

from ottla.protocol.entities import entity, wire


@entity
class ApiVersionsRequest(api_versions_request.ApiVersionsRequest):
    __version__: ClassVar[i16] = i16(5)
    # The broker that the client means to reach; both or neither.
    cluster_id: str | None = field(metadata=wire("string"), default=None)
    node_id: i32 = field(metadata=wire("int32"), default=i32(-1))


ApiVersionsRequestV5 = ApiVersionsRequest
ApiVersionsResponseV5 = ApiVersionsResponse
