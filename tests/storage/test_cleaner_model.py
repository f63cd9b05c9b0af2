"""Compaction against a model: any appends, any rounds, a crash at any step."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.storage.cleaner import LogCleaner
from ottla.storage.faulty_filesystem import FaultyFilesystem, PowerLoss
from ottla.storage.log import PartitionLog
from ottla.storage.offset_map import ENTRY_BYTES

from .batches import open_log
from .compaction import COMPACT, content, new_cleaner, put, settle

Step = tuple[str, str | None]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["1", "2", "3", None])),
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["1", "2", "3", None])),
        st.tuples(st.sampled_from(["roll", "clean"]), st.none()),
    ),
    max_size=40,
)


class Model:
    def __init__(self) -> None:
        self.appended: list[tuple[int, str, str | None]] = []

    def latest(self) -> dict[str, tuple[int, str | None]]:
        return {key: (offset, value) for offset, key, value in self.appended}

    def check(self, log: PartitionLog) -> None:
        """No new records, none out of order, and the last of each key is there."""
        found = content(log)
        assert set(found) <= set(self.appended)
        assert found == sorted(found)
        last = {key: (offset, value) for offset, key, value in found}
        for key, (offset, value) in self.latest().items():
            assert last.get(key) == (offset, value) or value is None
        for start in range(log.log_start_offset, log.log_end_offset):
            assert [entry for entry in content(log, start) if entry[0] >= start] == [
                entry for entry in found if entry[0] >= start
            ]


def play(steps: list[Step], log: PartitionLog, cleaner: LogCleaner, model: Model) -> Iterator[str]:
    for name, value in steps:
        if name == "roll":
            settle(log)
        elif name == "clean":
            settle(log)
            cleaner.clean_filthiest([log])
        else:
            model.appended.append((log.log_end_offset, name, value))
            put(log, name, value)
        yield name


@settings(max_examples=40)
@given(steps=STEPS, keys_max=st.integers(1, 5))
def test_compaction_agrees_with_the_model(steps: list[Step], keys_max: int) -> None:
    filesystem = FaultyFilesystem()
    log, model = open_log(filesystem, COMPACT), Model()
    cleaner = new_cleaner(filesystem, dedupe_buffer_size=keys_max * ENTRY_BYTES)
    for step in play(steps, log, cleaner, model):
        if step == "clean":
            model.check(log)
    settle(log)
    while cleaner.clean_filthiest([log]):
        model.check(log)
    assert len(content(log)) == len(model.latest())


@settings(max_examples=60)
@given(steps=STEPS, seed=st.integers(0, 10_000), power_loss=st.integers(0, 150))
def test_a_crash_in_compaction_loses_nothing(steps: list[Step], seed: int, power_loss: int) -> None:
    filesystem = FaultyFilesystem(seed)
    log, model = open_log(filesystem, COMPACT), Model()
    for _ in play(steps, log, new_cleaner(filesystem), model):
        pass
    settle(log)
    recovery_point = log.flushed_offset
    filesystem.power_loss_after(power_loss)
    try:
        new_cleaner(filesystem).clean_filthiest([log])
    except PowerLoss:
        pass
    filesystem.crash()
    again = open_log(filesystem, COMPACT, recovery_point=recovery_point)
    assert again.log_end_offset == log.log_end_offset
    model.check(again)
    settle(again)
    new_cleaner(filesystem).clean_filthiest([again])
    model.check(again)
