"""OffsetCommit: see the package."""

import datetime as dt
from dataclasses import dataclass, field

from kio.schema.offset_commit.v10 import request as offset_commit_request
from kio.schema.offset_commit.v10 import response as offset_commit_response


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
