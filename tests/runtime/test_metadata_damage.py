"""A damaged metadata replica is kept, and a new voter replaces it."""

from contextlib import suppress
from uuid import UUID

import pytest

from ottla.raft.control_records import control_batch, voters_record
from ottla.raft.quorum_state import QuorumState
from ottla.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.records.batch import assign
from ottla.runtime.metadata_damage import (
    finish_setting_aside,
    last_voters,
    read_voter_id,
    set_metadata_aside,
)
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.runtime.raft_log import RaftLog
from ottla.storage.errors import DamagedMetadata
from ottla.storage.faulty_filesystem import FaultyFilesystem, PowerLoss

METADATA = "/data/__cluster_metadata-0"
VOTER_ID = UUID(int=5)
STRAY = f"{METADATA}.{UUID(int=6).hex}-stray"
VOTED = QuorumState(leader_epoch=3, voted=ReplicaKey(1))


def damaged(seed: int = 0) -> FaultyFilesystem:
    disk = FaultyFilesystem(seed)
    disk.make_directory(METADATA)
    QuorumStateFile(disk, METADATA).save(VOTED)
    return disk


def test_what_is_damaged_is_kept_and_what_is_new_votes_for_nobody() -> None:
    disk = damaged()
    assert read_voter_id(disk, "/data") is None
    assert set_metadata_aside(disk, "/data", VOTER_ID, UUID(int=6)) == STRAY
    assert QuorumStateFile(disk, STRAY).load() == VOTED
    assert QuorumStateFile(disk, METADATA).load() == QuorumState()
    assert read_voter_id(disk, "/data") == VOTER_ID


def test_the_last_voters_are_known_though_the_log_is_damaged_before() -> None:
    disk = damaged()
    log = RaftLog.open(disk, "/data", 0)
    sets = [VoterSet.of([Voter(ReplicaKey(number))]) for number in (1, 2, 3)]
    for voters in sets:
        batch = control_batch([voters_record(voters)], 0)
        assign(batch, 0, log.end_offset, 0)
        log.append(batch)
    log.close()
    disk.flip_bit(f"{METADATA}/{'0' * 20}.log", 70)
    assert last_voters(disk, "/data") == sets[-1]


def test_a_flipped_bit_of_the_voters_id_is_noticed() -> None:
    disk = damaged()
    set_metadata_aside(disk, "/data", VOTER_ID, UUID(int=6))
    path = f"{METADATA}/voter-id"
    for position in range(disk.size(path)):
        disk.flip_bit(path, position)
        with pytest.raises(DamagedMetadata):
            read_voter_id(disk, "/data")
        disk.flip_bit(path, position)


def test_a_loss_of_power_leaves_the_one_or_the_other() -> None:
    outcomes = set()
    for step in range(30):
        for seed in range(3):
            disk = damaged(seed)
            disk.power_loss_after(step)
            with suppress(PowerLoss):
                set_metadata_aside(disk, "/data", VOTER_ID, UUID(int=6))
            disk.crash()
            finish_setting_aside(disk, "/data")
            state, voter_id = QuorumStateFile(disk, METADATA).load(), read_voter_id(disk, "/data")
            assert (state, voter_id) in [(VOTED, None), (QuorumState(), VOTER_ID)]
            outcomes.add(voter_id)
    assert outcomes == {None, VOTER_ID}
