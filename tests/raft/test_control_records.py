from uuid import UUID

import pytest
from kio.schema.leader_change_message.v0.data import LeaderChangeMessage

from ottla.protocol.reader import read_entity
from ottla.raft.control_records import (
    KRAFT_VERSION,
    LEADER_CHANGE,
    VOTERS,
    control_batch,
    kraft_version,
    leader_change,
    voters_in,
    voters_record,
)
from ottla.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from ottla.records.batch import assign, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import control_type, iterate_records
from ottla.records.errors import CorruptBatch

VOTER_SET = VoterSet.of(
    Voter(ReplicaKey(number, UUID(int=number)), (Endpoint("CONTROLLER", "host", 9093),))
    for number in (1, 2)
)


def test_the_first_batch_of_an_epoch() -> None:
    batch = control_batch(
        [leader_change(1, VOTER_SET, {1}), kraft_version(), voters_record(VOTER_SET)], 5
    )
    records = list(iterate_records(batch))

    assert read_header(batch).is_control
    assert [control_type(record) for record in records] == [LEADER_CHANGE, KRAFT_VERSION, VOTERS]
    message, _ = read_entity(LeaderChangeMessage, records[0].value or b"")
    assert message.leader_id == 1
    assert [voter.voter_id for voter in message.voters] == [1, 2]
    assert [voter.voter_id for voter in message.granting_voters] == [1]
    assert records[1].value == bytes.fromhex("0000 0001 00")


def test_voters_are_read_back_with_the_offset_of_their_record() -> None:
    batch = control_batch([kraft_version(), voters_record(VOTER_SET)], 5)
    assign(batch, 0, 40, 3)

    assert voters_in(batch) == [(41, VOTER_SET)]


def test_data_says_nothing_about_voters() -> None:
    assert voters_in(build_batch([Record(timestamp=0, value=b"x")])) == []


def test_a_damaged_record_is_refused() -> None:
    batch = control_batch([(VOTERS, b"\0\0\xff\xff\xff\xff\x0f")], 5)

    with pytest.raises(CorruptBatch, match="not a voters record"):
        voters_in(batch)
