"""TxnOffsetCommit: see the package. In v6, Kafka 4.4's, topics have ids in place of names."""

import uuid
from dataclasses import field
from typing import ClassVar

from kio.schema.txn_offset_commit.v5 import request as txn_offset_commit_request
from kio.schema.txn_offset_commit.v5 import response as txn_offset_commit_response
from kio.schema.txn_offset_commit.v5.request import TxnOffsetCommitRequestPartition
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponsePartition
from kio.static.primitive import i16

from ottla.protocol.entities import entity, wire


@entity
class TxnOffsetCommitRequestTopicV6:
    __version__: ClassVar[i16] = i16(6)
    __flexible__: ClassVar[bool] = True
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"), default=None)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


@entity
class TxnOffsetCommitRequestTopic(TxnOffsetCommitRequestTopicV6):
    name: str = field(metadata=wire("string"), default="")


@entity
class TxnOffsetCommitRequestV6(txn_offset_commit_request.TxnOffsetCommitRequest):
    __version__: ClassVar[i16] = i16(6)
    topics: tuple[TxnOffsetCommitRequestTopicV6, ...]  # type: ignore[assignment]


@entity
class TxnOffsetCommitRequest(TxnOffsetCommitRequestV6):
    topics: tuple[TxnOffsetCommitRequestTopic, ...]


@entity
class TxnOffsetCommitResponseTopicV6:
    __version__: ClassVar[i16] = i16(6)
    __flexible__: ClassVar[bool] = True
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"), default=None)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...]


@entity
class TxnOffsetCommitResponseTopic(TxnOffsetCommitResponseTopicV6):
    name: str = field(metadata=wire("string"), default="")


@entity
class TxnOffsetCommitResponseV6(txn_offset_commit_response.TxnOffsetCommitResponse):
    __version__: ClassVar[i16] = i16(6)
    topics: tuple[TxnOffsetCommitResponseTopicV6, ...]  # type: ignore[assignment]


@entity
class TxnOffsetCommitResponse(TxnOffsetCommitResponseV6):
    topics: tuple[TxnOffsetCommitResponseTopic, ...]
