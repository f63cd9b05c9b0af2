"""Metadata: see the package."""

from dataclasses import field

from kio.schema.metadata.v13 import request as metadata_request
from kio.schema.metadata.v13 import response as metadata_response

from ottla.protocol.entities import entity, wire

AUTHORIZED_OPERATIONS_UNKNOWN = -(2**31)


@entity
class MetadataRequest(metadata_request.MetadataRequest):
    # v8-v10; later clients use DescribeCluster.
    include_cluster_authorized_operations: bool = field(metadata=wire("bool"), default=False)


@entity
class MetadataResponse(metadata_response.MetadataResponse):
    cluster_authorized_operations: int = field(
        metadata=wire("int32"), default=AUTHORIZED_OPERATIONS_UNKNOWN
    )
