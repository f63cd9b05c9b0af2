"""A small machine and a log that commits when the test says so."""

from collections.abc import AsyncIterator
from typing import Any

from ottla.machine.contract import Timers
from ottla.machine.result import Completion, Deferred, Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records
from ottla.runtime.commit_log import Listener
from ottla.runtime.machine_batches import StoredBatch


class TextCodec:
    def encode(self, record: object) -> tuple[None, bytes]:
        assert isinstance(record, str)
        return None, record.encode()

    def decode(self, key: bytes | None, value: bytes | None) -> str:
        assert value is not None
        if value == b"bad":
            raise ValueError("not a word")
        return value.decode()


class Words:
    """Remembers words. `wait` is answered by the next word."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.words: list[object] = []
        self.loaded_at_ms: int | None = None
        self.waiting: list[Deferred[Any]] = []

    def replay(self, record: object, timestamp_ms: int) -> None:
        self.words.append(record)

    def snapshot(self) -> list[object]:
        return list(self.words)

    def on_loaded(self, now_ms: int) -> None:
        self.loaded_at_ms = now_ms

    def add(self, *words: str) -> Result[int]:
        completions = tuple(Completion(waiter, words[0]) for waiter in self.waiting)
        self.waiting = []
        return Result(len(self.words) + len(words), words, completions)

    def count(self) -> Result[int]:
        return Result(len(self.words))

    def wait(self) -> Result[Any]:
        deferred: Deferred[Any] = Deferred()
        self.waiting.append(deferred)
        return Result(deferred)

    def refuse(self) -> Result[None]:
        raise ApiError(ErrorCode.invalid_request, "no")


class ManualCommitLog:
    listener: Listener  # Since `listen`.

    def __init__(self, *words: str) -> None:
        self.stored: list[bytes | None] = [word.encode() for word in words]
        self.next_offset = len(self.stored)
        self.committed_offset = self.next_offset
        self.append_error: Exception | None = None
        self.load_error: Exception | None = None

    def listen(self, listener: Listener) -> None:
        self.listener = listener

    async def load(self) -> AsyncIterator[list[StoredBatch]]:
        if self.load_error:
            raise self.load_error
        del self.stored[self.committed_offset :]
        self.next_offset = self.committed_offset
        for offset, value in enumerate(self.stored):
            yield [StoredBatch([Record(offset, 5, None, value)])]

    def append(self, batch: bytearray) -> None:
        if self.append_error:
            raise self.append_error
        self.stored.extend(record.value for record in iterate_records(batch))
        self.next_offset = len(self.stored)

    def commit(self, offset: int | None = None) -> None:
        self.committed_offset = self.next_offset if offset is None else offset
        self.listener.on_committed()
