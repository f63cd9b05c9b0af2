"""Fetch: see the package."""

from dataclasses import dataclass, field

from kio.schema.fetch.v18 import request as fetch_request
from kio.schema.fetch.v18 import response as fetch_response


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTopic(fetch_request.FetchTopic):
    topic: str = field(metadata={"kafka_type": "string"}, default="")  # Until v12.


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenTopic(fetch_request.ForgottenTopic):
    topic: str = field(metadata={"kafka_type": "string"}, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest(fetch_request.FetchRequest):
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchableTopicResponse(fetch_response.FetchableTopicResponse):
    topic: str = field(metadata={"kafka_type": "string"}, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse(fetch_response.FetchResponse):
    responses: tuple[FetchableTopicResponse, ...]
