"""Produce: see the package."""

from dataclasses import dataclass, field

from kio.schema.produce.v13 import request as produce_request
from kio.schema.produce.v13 import response as produce_response


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduceData(produce_request.TopicProduceData):
    name: str = field(metadata={"kafka_type": "string"}, default="")  # Until v12.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequest(produce_request.ProduceRequest):
    topic_data: tuple[TopicProduceData, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProduceResponse(produce_response.TopicProduceResponse):
    name: str = field(metadata={"kafka_type": "string"}, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceResponse(produce_response.ProduceResponse):
    responses: tuple[TopicProduceResponse, ...]
