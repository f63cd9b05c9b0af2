"""A small machine and a log that commits when the test says so."""

from ottla.machine.result import Completion, Deferred, Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records
from ottla.runtime.machine_batches import StoredBatch


class TextCodec:
    def encode(self, record):
        return None, record.encode()

    def decode(self, key, value):
        if value == b"bad":
            raise ValueError("not a word")
        return value.decode()


class Words:
    """Remembers words. `wait` is answered by the word that comes next."""

    def __init__(self, timers):
        self.timers = timers
        self.words = []
        self.loaded_at_ms = None
        self.waiting = []

    def replay(self, record, timestamp_ms):
        self.words.append(record)

    def snapshot(self):
        return list(self.words)

    def on_loaded(self, now_ms):
        self.loaded_at_ms = now_ms

    def add(self, *words):
        completions = tuple(Completion(one, words[0]) for one in self.waiting)
        self.waiting = []
        return Result(len(self.words) + len(words), words, completions)

    def count(self):
        return Result(len(self.words))

    def wait(self):
        deferred = Deferred()
        self.waiting.append(deferred)
        return Result(deferred)

    def refuse(self):
        raise ApiError(ErrorCode.invalid_request, "no")


class ManualCommitLog:
    def __init__(self, *words):
        self.stored = [word.encode() for word in words]
        self.next_offset = len(self.stored)
        self.committed_offset = self.next_offset
        self.listener = None
        self.append_error = None
        self.load_error = None

    def listen(self, listener):
        self.listener = listener

    async def load(self):
        if self.load_error:
            raise self.load_error
        del self.stored[self.committed_offset :]
        self.next_offset = self.committed_offset
        for offset, value in enumerate(self.stored):
            yield [StoredBatch([Record(offset, 5, None, value)])]

    def append(self, batch):
        if self.append_error:
            raise self.append_error
        self.stored.extend(record.value for record in iterate_records(batch))
        self.next_offset = len(self.stored)

    def commit(self, offset=None):
        self.committed_offset = self.next_offset if offset is None else offset
        self.listener.on_committed()
