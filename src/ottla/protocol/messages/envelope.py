"""Envelope: some fields more than Kafka's.

Only nodes of a cluster send each other envelopes. The effects of a client's request must be visible
on its node when it is answered, so the response has the offset that the node's image must reach.
The request in an envelope has the newest version; the client's id and capabilities are separate
fields.
"""

from dataclasses import field

from kio.schema.envelope.v0 import request as envelope_request
from kio.schema.envelope.v0 import response as envelope_response
from kio.static.primitive import i64

from ottla.protocol.entities import entity, wire

_METADATA_OFFSET_TAG = 10_000  # Kafka counts its own from 0.
_CLIENT_ID_TAG = 10_001
_STRICT_TAG = 10_002


@entity
class EnvelopeRequest(envelope_request.EnvelopeRequest):
    client_id: str = field(metadata=wire("string", tag=_CLIENT_ID_TAG), default="")
    # It may be rejected with THROTTLING_QUOTA_EXCEEDED.
    is_strict: bool = field(metadata=wire("bool", tag=_STRICT_TAG), default=False)


@entity
class EnvelopeResponse(envelope_response.EnvelopeResponse):
    # Everything before it was in the controller's image at the time of the response.
    metadata_offset: i64 = field(metadata=wire("int64", tag=_METADATA_OFFSET_TAG), default=i64(0))
