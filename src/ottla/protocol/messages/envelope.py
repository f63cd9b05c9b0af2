"""Envelope: one field more than Kafka's.

Only nodes of a cluster send each other envelopes. What a client did through one node is to be seen
there when it is answered, so the answer says how far that node's image must be.
"""

from dataclasses import dataclass, field

from kio.schema.envelope.v0 import response as envelope_response
from kio.static.primitive import i64

_METADATA_OFFSET_TAG = 10_000  # Kafka counts its own from 0.


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeResponse(envelope_response.EnvelopeResponse):
    # Everything before it was in the controller's image when it answered.
    metadata_offset: i64 = field(
        metadata={"kafka_type": "int64", "tag": _METADATA_OFFSET_TAG}, default=i64(0)
    )
