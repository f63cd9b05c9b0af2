"""The core's output: one struct, whose fields are acted on from top to bottom.

The driver takes a Ready after every call into the core and acts on it before the next call. Acting
means writing; only `quorum_state` must be on disk before the driver continues. Everything else is
synced later and reported with `on_synced`: the core itself holds back what depends on it.
"""

from dataclasses import field

from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.messages import Message
from ottla.raft.quorum_state import QuorumState
from ottla.raft.states import Role


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    snapshot_id: OffsetAndEpoch
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class RoleChange:
    role: Role
    epoch: int
    leader_id: int | None
    epoch_start_offset: int | None = None  # A leader's: it may act once this is committed.
    reason: str = ""  # For operators: why it stands, leads or stopped leading, if known.


@dataclass(slots=True)
class Ready:
    # Write and sync before acting on anything else here. A vote that was given and forgotten elects
    # two leaders; a leader that forgot its epoch writes two histories of it.
    quorum_state: QuorumState | None = None

    # Truncate the log to this end. Never together with `appends`.
    truncate_to: int | None = None

    # Append in this order, then sync and call `on_synced`. Messages need not wait: the core counts
    # and fetches nothing before it is told of the sync.
    appends: list[bytes | bytearray] = field(default_factory=list)

    # Write to the unfinished file of the snapshot; position 0 begins a new one.
    snapshot_chunk: SnapshotChunk | None = None

    # The file is complete. Sync and rename it, replace the entire log with it in one step that a
    # crash undoes or leaves done, load the state machine from it, then call
    # `on_snapshot_installed`. The driver may take its time; the log changes just before that call,
    # and only then.
    install_snapshot: OffsetAndEpoch | None = None

    # Send once all of the above is written and `quorum_state` is synced. What a message describes
    # (`LogRange`, `SnapshotRange`) is read now. Losing a message is harmless.
    messages: list[Message] = field(default_factory=list)

    # Everything before it is committed and may be applied, once it is in the log here.
    high_watermark: int | None = None

    # Notify the controller. A new leader waits for its `epoch_start_offset`.
    role_change: RoleChange | None = None

    def __bool__(self) -> bool:
        return self != _NOTHING


_NOTHING = Ready()
