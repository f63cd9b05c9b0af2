"""A log compared with a list of batches, through appends, truncation, restarts and crashes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from hypothesis.strategies._internal.core import DataObject

from ottla.records.batch import iterate_headers
from ottla.storage.config import LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.reading import LogSlice, ReadHint

from .batches import NOW_MS, append, open_log, values_of

CONFIG = LogConfig(
    segment_bytes=400, index_interval_bytes=120, retention_bytes=1200, retention_ms=-1
)


class LogModel(RuleBasedStateMachine):
    """`batches` are (base offset, values, timestamp).

    The log has exactly those from the one that holds the log start offset, unless whole segments
    before it are gone.
    """

    @initialize(seed=st.integers(0, 2**32))
    def start(self, seed: int) -> None:
        self.filesystem = FaultyFilesystem(seed)
        self.log = open_log(self.filesystem, CONFIG)
        self.batches: list[tuple[int, list[bytes], int]] = []
        self.start_offset = 0
        self.end_offset = 0
        self.recovery_point = 0
        self.counter = 0
        self.hint: ReadHint | None = None

    @rule(count=st.integers(1, 3), padding=st.integers(0, 90), time=st.integers(0, 50))
    def append(self, count: int, padding: int, time: int) -> None:
        values = []
        for _ in range(count):
            self.counter += 1
            values.append(b"%d" % self.counter + b"." * padding)
        timestamp = NOW_MS + time
        result = append(self.log, *values, timestamp=timestamp)
        assert result.first_offset == self.end_offset
        self.batches.append((self.end_offset, values, timestamp))
        self.end_offset += count
        self.log.high_watermark = self.end_offset

    @rule(data=st.data(), size_max=st.integers(0, 700))
    def read(self, data: DataObject, size_max: int) -> None:
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        limit = data.draw(st.integers(self.start_offset, self.end_offset))
        self.check_read(self.log.read(offset, size_max, limit), offset, size_max, limit)

    @rule(size_max=st.integers(0, 700))
    def read_on(self, size_max: int) -> None:
        """Like a consumer: from where the last read ended, with its hint."""
        offset = self.start_offset
        if self.hint is not None and self.start_offset <= self.hint.offset <= self.end_offset:
            offset = self.hint.offset
        part = self.log.read(offset, size_max, self.end_offset, self.hint)
        self.check_read(part, offset, size_max, self.end_offset)
        self.hint = part.hint if part is not None else None

    def check_read(self, part: LogSlice | None, offset: int, size_max: int, limit: int) -> None:
        readable = [
            (base, values)
            for base, values, _ in self.batches
            if base + len(values) > offset and base + len(values) <= limit
        ]
        if part is None:
            assert not readable
            return
        data = part.read()
        assert len(data) == part.size
        headers = [header for _, header in iterate_headers(data)]
        found = readable[: len(headers)]
        assert [header.base_offset for header in headers] == [base for base, _ in found]
        assert values_of(data) == [value for _, values in found for value in values]
        assert part.size <= size_max or len(headers) == 1
        assert sum(header.size for header in headers) == part.size
        assert part.next_offset == headers[-1].next_offset

    @rule(data=st.data())
    def find_timestamp(self, data: DataObject) -> None:
        timestamp = NOW_MS + data.draw(st.integers(-1, 51))
        expected = next(
            (
                (max(base, self.start_offset), time, 0)
                for base, values, time in self.batches
                if time >= timestamp and base + len(values) > self.start_offset
            ),
            None,
        )
        assert self.log.offset_for_timestamp(timestamp) == expected

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        assert self.log.flush() == self.end_offset

    @rule()
    def checkpoint(self) -> None:
        self.recovery_point = self.log.flushed_offset

    @rule(data=st.data())
    def truncate(self, data: DataObject) -> None:
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        self.recovery_point = min(self.recovery_point, self.log.end_before(offset))
        self.log.truncate_to(offset)
        assert self.recovery_point <= self.log.log_end_offset
        if offset < self.end_offset:
            kept = [batch for batch in self.batches if batch[0] + len(batch[1]) <= offset]
            removed = [batch for batch in self.batches if batch[0] + len(batch[1]) > offset]
            self.end_offset = min(offset, removed[0][0]) if removed else offset
            if self.end_offset < self.start_offset or offset <= self.start_offset:
                kept, self.end_offset = [], self.start_offset
            self.batches = kept
        self.log.flush()

    @rule(data=st.data())
    def truncate_fully(self, data: DataObject) -> None:
        offset = data.draw(st.integers(0, self.end_offset + 10))
        self.recovery_point = min(self.recovery_point, offset)
        self.log.truncate_fully_and_start_at(offset)
        self.batches = []
        self.start_offset = self.end_offset = offset
        self.log.flush()

    @rule(data=st.data())
    def delete_records(self, data: DataObject) -> None:
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        self.start_offset = self.log.delete_records_before(offset)
        assert self.start_offset == offset
        self.forget_deleted()

    @rule()
    def retain(self) -> None:
        self.log.delete_expired(NOW_MS)
        assert self.log.log_start_offset >= self.start_offset
        self.start_offset = self.log.log_start_offset
        self.forget_deleted()
        assert self.log.size - self.log.segments[0].size < CONFIG.retention_bytes

    def forget_deleted(self) -> None:
        first = self.log.segments[0].base_offset
        self.batches = [batch for batch in self.batches if batch[0] >= first]

    @rule()
    def reopen_cleanly(self) -> None:
        self.log.close()
        self.reopen(clean_shutdown=True)

    @rule()
    def reopen_uncleanly(self) -> None:
        self.reopen(clean_shutdown=False)

    @precondition(lambda self: self.log.flushed_offset < self.end_offset)
    @rule()
    def restart_the_process_after_a_failed_sync(self) -> None:
        self.filesystem.fail_next_sync()
        with pytest.raises(StorageError):
            self.log.flush()
        self.filesystem.kill()
        self.reopen(clean_shutdown=False, writes_survived=True)
        assert self.log.flushed_offset == self.end_offset

    def reopen(self, *, clean_shutdown: bool, writes_survived: bool = False) -> None:
        self.log = open_log(
            self.filesystem,
            CONFIG,
            recovery_point=self.recovery_point,
            log_start_offset=self.start_offset,
            clean_shutdown=clean_shutdown,
            pass_over_damage=writes_survived,
            writes_survived=writes_survived,
        )
        assert not self.log.damage
        self.log.high_watermark = self.log.log_end_offset
        self.hint = None

    @precondition(lambda self: self.end_offset > 0)
    @rule()
    def crash(self) -> None:
        flushed = self.log.flushed_offset
        self.filesystem.crash()
        self.reopen(clean_shutdown=False)
        recovered = self.log.log_end_offset
        assert max(flushed, self.start_offset) <= recovered <= self.end_offset
        self.end_offset = recovered
        assert recovered in {self.start_offset, *(base + len(v) for base, v, _ in self.batches)}
        self.batches = [batch for batch in self.batches if batch[0] + len(batch[1]) <= recovered]

    @invariant()
    def offsets_agree(self) -> None:
        if hasattr(self, "log"):
            assert self.log.log_start_offset == self.start_offset
            assert self.log.log_end_offset == self.end_offset


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(max_examples=60, stateful_step_count=40)
