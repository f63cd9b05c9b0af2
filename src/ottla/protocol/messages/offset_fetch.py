"""OffsetFetch: see the package."""

from dataclasses import dataclass, field

from kio.schema.offset_fetch.v10 import request as offset_fetch_request
from kio.schema.offset_fetch.v10 import response as offset_fetch_response


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestTopics(offset_fetch_request.OffsetFetchRequestTopics):
    name: str = field(metadata={"kafka_type": "string"}, default="")  # Until v9.


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequestGroup(offset_fetch_request.OffsetFetchRequestGroup):
    topics: tuple[OffsetFetchRequestTopics, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequest(offset_fetch_request.OffsetFetchRequest):
    groups: tuple[OffsetFetchRequestGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseTopics(offset_fetch_response.OffsetFetchResponseTopics):
    name: str = field(metadata={"kafka_type": "string"}, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponseGroup(offset_fetch_response.OffsetFetchResponseGroup):
    topics: tuple[OffsetFetchResponseTopics, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse(offset_fetch_response.OffsetFetchResponse):
    groups: tuple[OffsetFetchResponseGroup, ...]
