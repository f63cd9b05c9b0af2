"""How a node with a new directory begins a cluster, and how it notices that it should not have.

A node whose disk is missing looks like a new one. Beyond loopback no node begins a cluster unasked
(`--new-cluster`). Everywhere, the node first listens for a moment for members of another cluster
that call it by its id (`runtime.absent_brokers`), before anything is written: in that case it does
not begin one. If they are heard later, while it is still the only node of its cluster, it stops at
once, and leaves a note in its directory that prevents another start.
"""

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import Final

from ottla.network.endpoints import Endpoint
from ottla.network.server import Server
from ottla.network.session import Session
from ottla.protocol.codec import read_request
from ottla.protocol.frames import parse_request_header
from ottla.runtime.claims import Claim, claim_in
from ottla.storage.filesystem import Filesystem

LOOPBACK_WAIT_S: Final = 0.4
WAIT_S: Final = 2.0
CLAIMED: Final = ".ottla_claimed"

_PARTS: Final = 8  # Of the listening time; each part counts or does not.
_STARVED_FACTOR: Final = 5  # The maximum extension of the listening time.

_VOTE_KEY: Final = 52
_BEGIN_QUORUM_EPOCH_KEY: Final = 53


def is_loopback(endpoints: Sequence[Endpoint]) -> bool:
    return all(_is_loopback(endpoint.host) for endpoint in endpoints)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening_s(endpoints: Sequence[Endpoint]) -> float:
    """How long to listen for members of another cluster; no one knows an arbitrary port."""
    if not any(endpoint.port for endpoint in endpoints):
        return 0.0
    return LOOPBACK_WAIT_S if is_loopback(endpoints) else WAIT_S


async def listen_for_members(server: Server, node_id: int, time_s: float) -> Claim | None:
    """The first claim on this node within the time. Clients that connect meanwhile must wait."""
    heard: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()

    def dispatch(session: Session, frame: memoryview) -> None:
        header = parse_request_header(frame)
        is_of_quorum = header.api_key in (_VOTE_KEY, _BEGIN_QUORUM_EPOCH_KEY)
        if is_of_quorum and session.may_act_as_node:
            from ottla.raft.wire_requests import request_from_wire

            claim = claim_in(request_from_wire(read_request(header, frame)), node_id, None)
            if claim is not None and not heard.done():
                heard.set_result(claim)
        session.close("the node starts")

    server.use(dispatch)
    server.start()
    await listen(heard, time_s)
    return heard.result() if heard.done() else None


async def listen(heard: "asyncio.Future[Claim]", time_s: float) -> None:
    """Wait until a claim is heard, or for a time that counts only while this process runs.

    On a machine where it does not run, the members that should call do not either.
    """
    loop = asyncio.get_running_loop()
    part_s = time_s / _PARTS
    latest_end_s = loop.time() + _STARVED_FACTOR * time_s
    counted = 0
    while counted < _PARTS and not heard.done() and loop.time() < latest_end_s:
        begin_s = loop.time()
        await asyncio.wait([heard], timeout=part_s)
        counted += loop.time() - begin_s < 2 * part_s


def claim_text(claim: Claim, node_id: int, address: object, directory: str) -> str:
    return (
        f"node {node_id} at {address} is a node of cluster {claim.cluster_id}, as node "
        f"{claim.member_id} of that cluster says, and {directory} is not the directory that it had "
        "there. If a disk is missing, mount it. If its data is lost, start the node with an empty "
        "directory and --join HOST:PORT of another node of that cluster. If this is to be another "
        f"cluster, take the node out of the old one first: `ottla node remove {node_id}`"
    )


def save_claim(filesystem: Filesystem, directory: str, text: str) -> None:
    filesystem.write_atomically(f"{directory}/{CLAIMED}", text.encode())


def read_claim(filesystem: Filesystem, directory: str) -> str | None:
    """Why the node must not start with this directory."""
    path = f"{directory}/{CLAIMED}"
    if not filesystem.exists(path):
        return None
    text = filesystem.read_bytes(path).decode(errors="replace")
    return f"{text}. It began a cluster of its own; to go on with that one, remove {path}"
