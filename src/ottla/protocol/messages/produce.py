"""Produce: see the package."""

from dataclasses import field

from kio.schema.produce.v13 import request as produce_request
from kio.schema.produce.v13 import response as produce_response

from ottla.protocol.entities import entity, wire


@entity
class TopicProduceData(produce_request.TopicProduceData):
    name: str = field(metadata=wire("string"), default="")  # Until v12.


@entity
class ProduceRequest(produce_request.ProduceRequest):
    topic_data: tuple[TopicProduceData, ...]


@entity
class TopicProduceResponse(produce_response.TopicProduceResponse):
    name: str = field(metadata=wire("string"), default="")


@entity
class ProduceResponse(produce_response.ProduceResponse):
    responses: tuple[TopicProduceResponse, ...]
