"""OffsetFetch: see the package."""

from dataclasses import field

from kio.schema.offset_fetch.v10 import request as offset_fetch_request
from kio.schema.offset_fetch.v10 import response as offset_fetch_response

from ottla.protocol.entities import entity, wire


@entity
class OffsetFetchRequestTopics(offset_fetch_request.OffsetFetchRequestTopics):
    name: str = field(metadata=wire("string"), default="")  # Until v9.


@entity
class OffsetFetchRequestGroup(offset_fetch_request.OffsetFetchRequestGroup):
    topics: tuple[OffsetFetchRequestTopics, ...] | None


@entity
class OffsetFetchRequest(offset_fetch_request.OffsetFetchRequest):
    groups: tuple[OffsetFetchRequestGroup, ...]


@entity
class OffsetFetchResponseTopics(offset_fetch_response.OffsetFetchResponseTopics):
    name: str = field(metadata=wire("string"), default="")


@entity
class OffsetFetchResponseGroup(offset_fetch_response.OffsetFetchResponseGroup):
    topics: tuple[OffsetFetchResponseTopics, ...]


@entity
class OffsetFetchResponse(offset_fetch_response.OffsetFetchResponse):
    groups: tuple[OffsetFetchResponseGroup, ...]
