"""Envelope: some fields more than Kafka's.

Only nodes of a cluster send each other envelopes. What a client did through one node is to be seen
there when it is answered, so the answer says how far that node's image must be. The request in an
envelope is of the newest version; what its client is called and understands stands beside it.
"""

from dataclasses import field

from kio.schema.envelope.v0 import request as envelope_request
from kio.schema.envelope.v0 import response as envelope_response
from kio.static.primitive import i64

from ottla.protocol.entities import entity

_METADATA_OFFSET_TAG = 10_000  # Kafka counts its own from 0.
_CLIENT_ID_TAG = 10_001
_STRICT_TAG = 10_002


@entity
class EnvelopeRequest(envelope_request.EnvelopeRequest):
    client_id: str = field(metadata={"kafka_type": "string", "tag": _CLIENT_ID_TAG}, default="")
    # It may be refused with THROTTLING_QUOTA_EXCEEDED.
    is_strict: bool = field(metadata={"kafka_type": "bool", "tag": _STRICT_TAG}, default=False)


@entity
class EnvelopeResponse(envelope_response.EnvelopeResponse):
    # Everything before it was in the controller's image when it answered.
    metadata_offset: i64 = field(
        metadata={"kafka_type": "int64", "tag": _METADATA_OFFSET_TAG}, default=i64(0)
    )
