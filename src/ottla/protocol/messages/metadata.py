"""Metadata: see the package."""

from dataclasses import dataclass, field

from kio.schema.metadata.v13 import request as metadata_request
from kio.schema.metadata.v13 import response as metadata_response

AUTHORIZED_OPERATIONS_UNKNOWN = -(2**31)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest(metadata_request.MetadataRequest):
    # v8-v10; later clients ask DescribeCluster.
    include_cluster_authorized_operations: bool = field(
        metadata={"kafka_type": "bool"}, default=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse(metadata_response.MetadataResponse):
    cluster_authorized_operations: int = field(
        metadata={"kafka_type": "int32"}, default=AUTHORIZED_OPERATIONS_UNKNOWN
    )
