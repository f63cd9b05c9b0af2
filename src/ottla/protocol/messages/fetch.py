"""Fetch: see the package."""

from dataclasses import field

from kio.schema.fetch.v18 import request as fetch_request
from kio.schema.fetch.v18 import response as fetch_response

from ottla.protocol.entities import entity, wire


@entity
class FetchTopic(fetch_request.FetchTopic):
    topic: str = field(metadata=wire("string"), default="")  # Until v12.


@entity
class ForgottenTopic(fetch_request.ForgottenTopic):
    topic: str = field(metadata=wire("string"), default="")


@entity
class FetchRequest(fetch_request.FetchRequest):
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...]


@entity
class FetchableTopicResponse(fetch_response.FetchableTopicResponse):
    topic: str = field(metadata=wire("string"), default="")


@entity
class FetchResponse(fetch_response.FetchResponse):
    responses: tuple[FetchableTopicResponse, ...]
