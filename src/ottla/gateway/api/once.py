"""`Idempotency-Key`: a repeated request gets the first answer, through any gateway."""

import hashlib
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request

from ottla.client.wire.cluster import Topic
from ottla.gateway.api.bodies import read_body
from ottla.gateway.api.new_records import acks_of
from ottla.gateway.api.parameters import header
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.partition_writer import Acks, Published
from ottla.gateway.core.record_json import NewRecord
from ottla.gateway.services import Services

_NAME: Final = b"idempotency-key"
_KEY_CHARACTERS_MAX: Final = 255


def is_once(request: Request) -> bool:
    return header(request, _NAME) is not None


async def publish_once(
    request: Request, services: Services, topic: str, known: Topic, records: Sequence[NewRecord]
) -> list[Published]:
    """The request's body must have been read."""
    key = (header(request, _NAME) or b"").decode("latin-1")
    if not 0 < len(key) <= _KEY_CHARACTERS_MAX:
        raise Invalid(f"an Idempotency-Key has 1 to {_KEY_CHARACTERS_MAX} characters")
    if acks_of(request) is not Acks.ALL:
        raise Invalid("an Idempotency-Key needs acks=all")
    request_line = f"{request.url.path}?{request.url.query}\0".encode()
    fingerprint = hashlib.sha256(request_line + await read_body(request)).hexdigest()
    outcomes = await services.idempotency.publish(key, fingerprint, topic, known, records)
    services.counts.published += len(outcomes)
    return outcomes
