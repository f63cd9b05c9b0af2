"""Compaction of transactions, across restarts and over time."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.records.batch import iterate_headers, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import ControlType, iterate_records, parse_marker
from ottla.storage.cleaner import LogCleaner
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog

from .batches import DIRECTORY, NOW_MS, append_marker, open_log, read_all

HALF_DAY_MS = 12 * 3_600_000
CONFIG = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=400,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.0,
)
PRODUCERS = st.integers(1, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PRODUCERS, st.sampled_from("abc")),
        st.tuples(st.just("write"), PRODUCERS, st.sampled_from("abc")),
        st.tuples(st.sampled_from(["commit", "abort"]), PRODUCERS, st.just("")),
        st.tuples(st.just("plain"), st.just(0), st.sampled_from("abc")),
        st.tuples(st.sampled_from(["clean", "restart", "crash"]), st.just(0), st.just("")),
    ),
    max_size=40,
)


class World:
    """A log, and what a read_committed consumer must find in it."""

    def __init__(self) -> None:
        self.filesystem = FaultyFilesystem()
        self.log = open_log(self.filesystem, CONFIG)
        self.now_ms = NOW_MS
        self.sequences = dict.fromkeys(range(1, 4), 0)
        self.open: dict[int, list[tuple[int, str]]] = {}
        self.committed: list[tuple[int, str]] = []

    def step(self, kind: str, producer_id: int, key: str) -> None:
        if kind == "write":
            offset = self.append(key, producer_id)
            self.open.setdefault(producer_id, []).append((offset, key))
        elif kind == "plain":
            self.committed.append((self.append(key), key))
        elif kind in ("commit", "abort"):
            self.end(producer_id, kind)
        elif kind == "clean":
            self.clean()
        else:
            self.restart(crash=kind == "crash")

    def append(self, key: str, producer_id: int = 0) -> int:
        options = {}
        if producer_id:
            options = {
                "producer_id": producer_id,
                "producer_epoch": 0,
                "base_sequence": self.sequences[producer_id],
                "transactional": True,
            }
            self.sequences[producer_id] += 1
        record = Record(timestamp=NOW_MS, key=key.encode(), value=b"%d" % self.log.log_end_offset)
        batch = build_batch([record], **options)  # type: ignore[arg-type]
        appended = self.log.append_as_leader(memoryview(batch), read_header(batch), 0, NOW_MS)
        assert not appended.duplicate
        return appended.first_offset

    def end(self, producer_id: int, kind: str) -> None:
        records = self.open.pop(producer_id, None)
        if records is None:
            return
        type_ = ControlType.COMMIT if kind == "commit" else ControlType.ABORT
        append_marker(self.log, type_, producer_id, 0)
        if kind == "commit":
            self.committed += records

    def clean(self) -> None:
        self.now_ms += HALF_DAY_MS
        self.log.roll()
        self.log.high_watermark = self.log.flush()
        LogCleaner(
            self.filesystem,
            lambda: self.now_ms,
            dedupe_buffer_size=1 << 20,
            io_buffer_size=256,
        ).clean_filthiest([self.log])

    def restart(self, *, crash: bool) -> None:
        recovery_point = self.log.flush()
        if not crash:
            self.log.close()
        for name in self.filesystem.list(DIRECTORY):
            if name.endswith(".snapshot"):
                self.filesystem.remove(f"{DIRECTORY}/{name}")
        if crash:
            self.filesystem.crash()
        self.log = open_log(
            self.filesystem,
            CONFIG,
            recovery_point=recovery_point,
            clean_shutdown=not crash,
            producer_expiration_ms=1 << 60,
        )

    def check(self) -> None:
        log = self.log
        log.high_watermark = log.flush()
        first_open = min((records[0][0] for records in self.open.values()), default=None)
        expected = log.log_end_offset if first_open is None else first_open
        assert log.last_stable_offset(log.high_watermark) == expected
        found = read_committed(log, expected)
        decided = [(offset, key) for offset, key in self.committed if offset < expected]
        assert set(found) <= set(decided)
        assert found == sorted(found)
        latest = {key: offset for offset, key in sorted(decided)}
        assert {key: offset for offset, key in found} == latest


def read_committed(log: PartitionLog, end_offset: int) -> list[tuple[int, str]]:
    """Like a consumer with isolation.level=read_committed."""
    coming = log.aborted_transactions(0, end_offset)
    aborted: set[int] = set()
    found = []
    data = read_all(log)
    for position, header in iterate_headers(data):
        if header.base_offset >= end_offset:
            break
        while coming and coming[0].first_offset <= header.last_offset:
            aborted.add(coming.pop(0).producer_id)
        records = list(iterate_records(data, position))
        if header.is_control:
            markers = [parse_marker(record) for record in records]
            if any(marker and marker.type is ControlType.ABORT for marker in markers):
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            found += [(record.offset, (record.key or b"").decode()) for record in records]
    return found


@settings(max_examples=100)
@given(STEPS)
def test_committed_records_survive_and_aborted_ones_do_not_appear(
    steps: list[tuple[str, int, str]],
) -> None:
    world = World()
    for step in steps:
        world.step(*step)
        if step[0] in ("clean", "restart", "crash"):
            world.check()
    for producer_id in list(world.open):
        world.end(producer_id, "commit")
    for _ in range(4):
        world.append("unrelated")
        world.committed.append((world.log.log_end_offset - 1, "unrelated"))
        world.clean()
        world.check()
    world.restart(crash=False)
    world.check()
    for producer_id in world.sequences:
        world.append("after", producer_id)
