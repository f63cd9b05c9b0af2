"""OffsetCommit: see the package."""

import datetime as dt
from dataclasses import field

from kio.schema.offset_commit.v10 import request as offset_commit_request
from kio.schema.offset_commit.v10 import response as offset_commit_response

from ottla.protocol.entities import entity, wire


@entity
class OffsetCommitRequestTopic(offset_commit_request.OffsetCommitRequestTopic):
    name: str = field(metadata=wire("string"), default="")  # Until v9.


@entity
class OffsetCommitRequest(offset_commit_request.OffsetCommitRequest):
    topics: tuple[OffsetCommitRequestTopic, ...]
    retention_time: dt.timedelta = field(
        metadata=wire("timedelta_i64"), default=dt.timedelta(milliseconds=-1)
    )  # Until v4; -1 for the broker's own.


@entity
class OffsetCommitResponseTopic(offset_commit_response.OffsetCommitResponseTopic):
    name: str = field(metadata=wire("string"), default="")


@entity
class OffsetCommitResponse(offset_commit_response.OffsetCommitResponse):
    topics: tuple[OffsetCommitResponseTopic, ...]
