"""The control records of the metadata log: leader and voters.

Written like Kafka's: a control batch whose keys have the type and whose values have the layouts
LeaderChangeMessage v0, KRaftVersionRecord v0 and VotersRecord v0. Kafka reads no other version of
them, whatever version the bodies state.
"""

import struct
from collections.abc import Iterable
from typing import Any, Final

from kio.schema.k_raft_version_record.v0.data import KRaftVersionRecord
from kio.schema.leader_change_message.v0.data import LeaderChangeMessage
from kio.schema.leader_change_message.v0.data import Voter as LeaderChangeVoter
from kio.schema.types import BrokerId
from kio.schema.voters_record.v0.data import Endpoint as VoterEndpoint
from kio.schema.voters_record.v0.data import KRaftVersionFeature, VotersRecord
from kio.schema.voters_record.v0.data import Voter as VoterEntry
from kio.static.primitive import i16, i32, u16

from ottla.protocol.errors import ProtocolError
from ottla.protocol.reader import read_entity
from ottla.protocol.writer import write_entity
from ottla.raft.voters import KRAFT_VERSION_MAX, Endpoint, ReplicaKey, Voter, VoterSet
from ottla.records.batch import Buffer, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import control_type, iterate_records
from ottla.records.errors import CorruptBatch

LEADER_CHANGE: Final = 2
KRAFT_VERSION: Final = 5
VOTERS: Final = 6

_KEY: Final = struct.Struct(">hh")  # Version, type.


def leader_change(leader_id: int, voters: VoterSet, granting: Iterable[int]) -> tuple[int, bytes]:
    granting_ids = frozenset(granting)
    entries = [LeaderChangeVoter(voter_id=i32(voter.key.id)) for voter in voters]
    message = LeaderChangeMessage(
        version=i16(0),
        leader_id=BrokerId(leader_id),
        voters=tuple(entries),
        granting_voters=tuple(entry for entry in entries if entry.voter_id in granting_ids),
    )
    return LEADER_CHANGE, _body(message)


def kraft_version(version: int = KRAFT_VERSION_MAX) -> tuple[int, bytes]:
    return KRAFT_VERSION, _body(KRaftVersionRecord(version=i16(0), k_raft_version=i16(version)))


def voters_record(voters: VoterSet) -> tuple[int, bytes]:
    record = VotersRecord(version=i16(0), voters=tuple(map(_entry, voters)))
    return VOTERS, _body(record)


def control_batch(records: Iterable[tuple[int, bytes]], timestamp_ms: int) -> bytearray:
    """A single batch, without its offset in a log."""
    return build_batch(
        [
            Record(timestamp=timestamp_ms, key=_KEY.pack(0, number), value=value)
            for number, value in records
        ],
        control=True,
    )


def voters_in(batch: Buffer, position: int = 0) -> list[tuple[int, VoterSet]]:
    """The voter sets in the batch at the position, by offset. RecordError for a damaged batch."""
    if not read_header(batch, position).is_control:
        return []
    return [
        (record.offset, _voter_set(record.value or b""))
        for record in iterate_records(batch, position)
        if control_type(record) == VOTERS
    ]


def _body(entity: object) -> bytes:
    out = bytearray()
    write_entity(out, entity)
    return bytes(out)


def _entry(voter: Voter) -> VoterEntry:
    return VoterEntry(
        voter_id=BrokerId(voter.key.id),
        voter_directory_id=voter.key.directory_id,
        endpoints=tuple(
            VoterEndpoint(name=name, host=host, port=u16(port))
            for name, host, port in voter.endpoints
        ),
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=i16(voter.min_kraft_version),
            max_supported_version=i16(voter.max_kraft_version),
        ),
    )


def _voter_set(value: bytes) -> VoterSet:
    try:
        record: Any = read_entity(VotersRecord, value)[0]
    except ProtocolError as error:
        raise CorruptBatch(f"not a voters record: {error}") from error
    return VoterSet.of(
        Voter(
            ReplicaKey(entry.voter_id, entry.voter_directory_id),
            tuple(Endpoint(each.name, each.host, each.port) for each in entry.endpoints),
            entry.k_raft_version_feature.min_supported_version,
            entry.k_raft_version_feature.max_supported_version,
        )
        for entry in record.voters
    )
