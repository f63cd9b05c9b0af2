"""Messages whose newest version dropped a field that older versions still need.

Each is the newest version's entity and that field besides: most often the name of a topic, for
which the newest version has only its id. Handlers work with these. In a request one of name and id
is there, as the client's version has it; in a response both should be given.
"""

import datetime as dt
from dataclasses import dataclass, field

from kio.schema.fetch.v18 import request as fetch_request
from kio.schema.fetch.v18 import response as fetch_response
from kio.schema.metadata.v13 import request as metadata_request
from kio.schema.metadata.v13 import response as metadata_response
from kio.schema.offset_commit.v10 import request as offset_commit_request
from kio.schema.offset_commit.v10 import response as offset_commit_response
from kio.schema.offset_fetch.v10 import request as offset_fetch_request
from kio.schema.offset_fetch.v10 import response as offset_fetch_response
from kio.schema.produce.v13 import request as produce_request
from kio.schema.produce.v13 import response as produce_response
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.schema.update_features.v2 import response as update_features_response

AUTHORIZED_OPERATIONS_UNKNOWN = -(2**31)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRequest(metadata_request.MetadataRequest):
    # v8-v10; later clients ask DescribeCluster.
    include_cluster_authorized_operations: bool = field(
        metadata={"kafka_type": "bool"}, default=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataResponse(metadata_response.MetadataResponse):
    cluster_authorized_operations: int = field(
        metadata={"kafka_type": "int32"}, default=AUTHORIZED_OPERATIONS_UNKNOWN
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic(offset_commit_request.OffsetCommitRequestTopic):
    name: str = field(metadata={"kafka_type": "string"}, default="")  # Until v9.


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest(offset_commit_request.OffsetCommitRequest):
    topics: tuple[OffsetCommitRequestTopic, ...]
    retention_time: dt.timedelta = field(
        metadata={"kafka_type": "timedelta_i64"}, default=dt.timedelta(milliseconds=-1)
    )  # Until v4; -1 is for the broker's own.


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponseTopic(offset_commit_response.OffsetCommitResponseTopic):
    name: str = field(metadata={"kafka_type": "string"}, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse(offset_commit_response.OffsetCommitResponse):
    topics: tuple[OffsetCommitResponseTopic, ...]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateFeaturesResponse(update_features_response.UpdateFeaturesResponse):
    # Until v1, whose clients look for each feature that they asked to update.
    results: tuple[UpdatableFeatureResult, ...] = ()
