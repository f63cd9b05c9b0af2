from uuid import UUID

import pytest

from ottla.raft.quorum_state import QuorumState
from ottla.raft.voters import ReplicaKey


def test_it_is_written_as_kafka_does() -> None:
    state = QuorumState(7, None, ReplicaKey(2, UUID("0a0b0c0d-0e0f-1011-1213-141516171819")))

    assert state.to_json() == (
        '{"leaderId":-1,"leaderEpoch":7,"votedId":2,'
        '"votedDirectoryId":"CgsMDQ4PEBESExQVFhcYGQ","data_version":1,"crc32c":"453ac01c"}'
    )


@pytest.mark.parametrize(
    "state",
    [
        QuorumState(),
        QuorumState(3, 1),
        QuorumState(3, None, ReplicaKey(2)),
        QuorumState(3, 0, ReplicaKey(0, UUID(int=9))),
    ],
)
def test_it_is_read_back(state: QuorumState) -> None:
    assert QuorumState.from_json(state.to_json()) == state


def test_version_0_is_read() -> None:
    text = (
        '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )

    assert QuorumState.from_json(text) == QuorumState(2, 1, None)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"data_version":2}', '{"data_version":1,"leaderId":"x"}']
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quorum-state file"):
        QuorumState.from_json(text)
