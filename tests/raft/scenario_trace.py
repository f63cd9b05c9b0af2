"""How scenarios trace messages and a node's actions."""

from collections.abc import Iterator

from ottla.protocol.errors import ErrorCode
from ottla.raft import messages
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.messages import Message
from ottla.raft.ready import Ready
from ottla.records.batch import iterate_headers, read_header


def show_ready(ready: Ready) -> Iterator[str]:
    """The parts of a Ready in the order of acting on them, without messages."""
    saved = ready.quorum_state
    if saved is not None:
        leader = "-" if saved.leader_id is None else saved.leader_id
        yield f"saves epoch {saved.leader_epoch}, leader {leader}, voted {saved.voted or '-'}"
    if ready.truncate_to is not None:
        yield f"truncates to {ready.truncate_to}"
    for batch in ready.appends:
        header = read_header(batch)
        kind = "control" if header.is_control else "data"
        yield f"appends {kind} {header.base_offset}@{header.partition_leader_epoch}"
    if ready.snapshot_chunk is not None:
        chunk = ready.snapshot_chunk
        yield f"writes snapshot {_end(chunk.snapshot_id)} from position {chunk.position}"
    if ready.install_snapshot is not None:
        yield f"installs snapshot {_end(ready.install_snapshot)}"
    if ready.high_watermark is not None:
        yield f"commits to {ready.high_watermark}"
    if ready.role_change is not None:
        yield f"is {ready.role_change.role.value} in epoch {ready.role_change.epoch}"


def show_message(message: Message) -> str:
    source = "client" if message.source < 0 else message.source
    destination = "client" if message.destination < 0 else message.destination
    return f"{source}>{destination} {_show(message.body)}"


def _show(body: messages.Request | messages.Response) -> str:
    name = type(body).__name__.removesuffix("Request").removesuffix("Response")
    if isinstance(body, messages.Request):
        return f"{name} {_show_request(body)}"
    if body.error_code is not ErrorCode.none:
        return f"{name} <- {body.error_code.name}{_leader(body)}"
    return f"{name} <- {_show_response(body)}"


def _show_request(body: messages.Request) -> str:
    match body:
        case messages.VoteRequest():
            kind = "pre-vote " if body.pre_vote else ""
            log = OffsetAndEpoch(body.last_offset, body.last_offset_epoch)
            return f"{kind}epoch={body.replica_epoch} log={_end(log)}"
        case messages.FetchRequest():
            end = OffsetAndEpoch(body.fetch_offset, body.last_fetched_epoch)
            return f"epoch={body.current_leader_epoch} from={_end(end)}"
        case messages.FetchSnapshotRequest():
            return f"{_end(body.snapshot_id)} position={body.position}"
        case messages.EndQuorumEpochRequest():
            preferred = ",".join(str(key.id) for key in body.preferred_candidates) or "-"
            return f"epoch={body.leader_epoch} preferred={preferred}"
        case messages.BeginQuorumEpochRequest():
            return f"epoch={body.leader_epoch}"
        case _:
            return f"{body.voter.id}"


def _show_response(body: messages.Response) -> str:
    match body:
        case messages.VoteResponse():
            return "granted" if body.vote_granted else f"rejected{_leader(body)}"
        case messages.FetchResponse(diverging_epoch=OffsetAndEpoch() as end):
            return f"diverging {_end(end)}"
        case messages.FetchResponse(snapshot_id=OffsetAndEpoch() as end):
            return f"snapshot {_end(end)}"
        case messages.FetchResponse(records=bytes() as records):
            count = sum(1 for _ in iterate_headers(records))
            return f"{count} batches, committed {body.high_watermark}"
        case messages.FetchSnapshotResponse(unaligned_records=bytes() as data):
            return f"{len(data)} of {body.size} bytes"
        case _:
            return "ok"


def _leader(body: messages.Response) -> str:
    leader_id, epoch = getattr(body, "leader_id", None), getattr(body, "leader_epoch", None)
    if epoch is None:
        return f": {getattr(body, 'error_message', '')}"
    return f" (leader {'-' if leader_id == messages.NOBODY else leader_id}, epoch {epoch})"


def _end(end: OffsetAndEpoch) -> str:
    return f"{end.offset}@{end.epoch}"
