"""The `quorum-state` file: what a replica must not forget about elections.

Kafka's format, JSON of version 1; version 0, which also has the voters, can be read. A checksum is
added, which Kafka ignores: a vote or an epoch that differs from what was saved elects two leaders.
"""

import base64
import json
from typing import Any
from uuid import UUID

from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.voters import ReplicaKey
from ottla.records.crc import crc32c

_VERSIONS_READ = (0, 1)
_NOBODY = -1
_CHECKSUM = "crc32c"


@dataclass(frozen=True, slots=True)
class QuorumState:
    leader_epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None  # At most one per epoch, ever.

    def to_json(self) -> str:
        voted = self.voted or ReplicaKey(_NOBODY)
        content = {
            "leaderId": _NOBODY if self.leader_id is None else self.leader_id,
            "leaderEpoch": self.leader_epoch,
            "votedId": voted.id,
            "votedDirectoryId": _uuid_text(voted.directory_id),
            "data_version": 1,
        }
        return _dump({**content, _CHECKSUM: _checksum(content)})

    @classmethod
    def from_json(cls, text: str) -> "QuorumState":
        """Raises ValueError with the problem."""
        try:
            content = json.loads(text)
            checksum = content.pop(_CHECKSUM, None)
            if checksum is not None and checksum != _checksum(content):
                raise ValueError("its checksum is wrong")
            version = content["data_version"]
            if version not in _VERSIONS_READ:
                raise ValueError(f"unknown version {version}")
            voted_id = int(content["votedId"])
            voted = ReplicaKey(voted_id, _uuid(content.get("votedDirectoryId", "")))
            leader_id = int(content["leaderId"])
            return cls(
                leader_epoch=int(content["leaderEpoch"]),
                leader_id=None if leader_id == _NOBODY else leader_id,
                voted=None if voted_id == _NOBODY else voted,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"not a quorum-state file: {error}") from error


def _dump(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def _checksum(content: dict[str, Any]) -> str:
    return f"{crc32c(_dump(content).encode()):08x}"


def _uuid_text(value: UUID | None) -> str:
    return base64.urlsafe_b64encode((value or UUID(int=0)).bytes).decode().rstrip("=")


def _uuid(text: str) -> UUID | None:
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    value = UUID(bytes=data) if data else UUID(int=0)
    return value if value.int else None
