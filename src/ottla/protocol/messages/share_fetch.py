"""ShareFetch: one field more than Kafka's.

A gateway passes what it fetched to consumers that may acknowledge through any other gateway, so the
locks must not end with its session.
"""

from dataclasses import field

from kio.schema.share_fetch.v2 import request as share_fetch_request
from kio.static.primitive import i32

from ottla.protocol.entities import entity, wire

_HOLD_MS_TAG = 10_000  # Kafka counts its own from 0.


@entity
class ShareFetchRequest(share_fetch_request.ShareFetchRequest):
    # How long acquired records are held, whatever happens to the member; 0 for ordinary locks.
    hold_ms: i32 = field(metadata=wire("int32", tag=_HOLD_MS_TAG), default=i32(0))
