"""Many connections with every kind of request, under limits that are always exceeded."""

import asyncio
import contextlib
import random
from pathlib import Path
from typing import Any

import pytest
from tests.network.peer import ANYBODY, Peer, Run, frame, peer_of, serving, until
from tests.network.some_file import Piece, SomeFile

from ottla.network.answers import Reply
from ottla.network.session import Session

REQUESTS_PER_PEER = 120
BOUNDS: dict[str, Any] = {
    "pending_requests_max": 5,
    "pending_request_bytes_max": 20_000,
    "unsent_bytes_max": 3_000,
    "queued_bytes_max": 60_000,
    "send_buffer_bytes": 100_000,
}


class Mixed:
    """A request is `kind size filler`; its response has `size` bytes and depends only on that."""

    def __init__(self, chance: random.Random, files: list[SomeFile], content: bytes) -> None:
        self.chance = chance
        self.files = files
        self.content = content
        self.waiting: list[tuple[Reply, int]] = []

    def __call__(self, session: Session, body: memoryview) -> None:
        kind, size = bytes(body[:20]).split()[:2]
        match kind:
            case b"now":
                session.send_now(self.answer(int(size)))
            case b"later":
                self.waiting.append((session.reply(ANYBODY), int(size)))
            case b"file":
                piece = Piece(self.chance.choice(self.files), 0, int(size))
                session.reply(ANYBODY).send([int(size).to_bytes(4), piece])

    def answer(self, size: int) -> bytes:
        return frame(self.content[:size])

    async def complete(self) -> None:
        while True:
            await asyncio.sleep(0)
            for _ in range(min(len(self.waiting), 3)):
                reply, size = self.waiting.pop(self.chance.randrange(len(self.waiting)))
                reply.send([self.answer(size)])


def requests_of(chance: random.Random) -> list[tuple[bytes, int]]:
    requests = []
    for _ in range(REQUESTS_PER_PEER):
        kind = chance.choice([b"now", b"later", b"file", b"quiet"])
        size = chance.choice([1, 300, 9_000, 150_000])
        filler = b" " * chance.choice([0, 100, 5_000, 90_000])
        requests.append((kind + b" %d " % size + filler, 0 if kind == b"quiet" else size))
    return requests


async def send_in_chunks(peer: Peer, stream: bytes, chance: random.Random) -> None:
    position = 0
    while position < len(stream):
        size = chance.choice([1, 7, 500, 20_000, 400_000])
        await peer.send(stream[position : position + size])
        position += size


async def converse(peer: Peer, chance: random.Random, mixed: Mixed) -> None:
    requests = requests_of(chance)
    stream = b"".join(frame(body) for body, _ in requests)
    sending = asyncio.create_task(send_in_chunks(peer, stream, chance))
    for _, size in requests:
        if size:
            assert await peer.receive_frame() == mixed.content[:size]
    await sending


@pytest.mark.parametrize("seed", range(3))
def test_every_peer_gets_exactly_its_answers(run: Run, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = chance.randbytes(150_000)
    (tmp_path / "segment").write_bytes(content)

    async def main() -> None:
        async with serving(mixed, **BOUNDS) as server, contextlib.AsyncExitStack() as stack:
            completing = asyncio.create_task(mixed.complete())
            peers = [await stack.enter_async_context(peer_of(server)) for _ in range(6)]
            chances = [random.Random(chance.random()) for _ in peers]
            await asyncio.gather(
                *(converse(*each, mixed) for each in zip(peers, chances, strict=True))
            )
            # The last requests may have no response.
            await until(lambda: server.counters.frames == 6 * REQUESTS_PER_PEER)
            await until(lambda: server.queued_bytes == 0 and not server.counters.sessions_paused)
            completing.cancel()
            assert server.counters.pauses > 0
            assert sum(session.receiver.held_bytes for session in server.sessions) == 0

    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(contextlib.closing(SomeFile(tmp_path / "segment", way)))
            for way in ("sendfile", "cached", "thread")
        ]
        mixed = Mixed(chance, files, content)
        run(main())
