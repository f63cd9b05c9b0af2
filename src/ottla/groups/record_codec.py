"""Encodes and decodes the records of `__consumer_offsets`."""

from ottla.groups.absences import AbsenceKey, AbsenceValue
from ottla.groups.classic.records import GroupMetadataKey, GroupMetadataValue
from ottla.groups.consumer.records import CONSUMER_FAMILIES
from ottla.groups.offsets.record_codec import (
    OFFSET_COMMIT_FAMILIES,
    decode_offset_commit,
    encode_offset_commit,
)
from ottla.groups.offsets.records import OffsetCommitRecord
from ottla.groups.share.records import SHARE_FAMILIES
from ottla.groups.streams.records import STREAMS_FAMILIES
from ottla.machine.record import Record, UnknownRecord
from ottla.machine.record_codec import Families, FamilyCodec

_GROUP_FAMILIES: Families = {
    GroupMetadataKey.RECORD_TYPE: (GroupMetadataKey, GroupMetadataValue),
    AbsenceKey.RECORD_TYPE: (AbsenceKey, AbsenceValue),
    **{
        key.RECORD_TYPE: (key, value)
        for key, value in (*CONSUMER_FAMILIES, *SHARE_FAMILIES, *STREAMS_FAMILIES)
    },
}


_CODEC = FamilyCodec(_GROUP_FAMILIES)


class GroupRecordCodec:
    """Implements `machine.contract.RecordCodec`. Committed offsets have their own codec."""

    def encode(self, record: object) -> tuple[bytes, bytes | None]:
        if isinstance(record, OffsetCommitRecord):
            return encode_offset_commit(record)
        return _CODEC.encode(record)

    def decode(
        self, key: bytes | None, value: bytes | None
    ) -> Record | OffsetCommitRecord | UnknownRecord:
        if key is not None and key.startswith(OFFSET_COMMIT_FAMILIES):
            return decode_offset_commit(key, value)
        return _CODEC.decode(key, value)
