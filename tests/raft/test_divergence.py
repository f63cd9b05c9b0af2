from hypothesis import given
from hypothesis import strategies as st
from tests.raft.memory_log import MemoryLog

from ottla.raft.divergence import LogComparison, compare_end, truncation_offset
from ottla.raft.log import OffsetAndEpoch, PendingLog
from ottla.raft.voters import VoterSet
from ottla.records.batch import assign
from ottla.records.builder import Record, build_batch


@st.composite
def two_logs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """The epochs of two logs with a common history: each epoch continues from one offset."""
    logs: list[list[int]] = [[]]
    for epoch in range(1, draw(st.integers(1, 6)) + 1):
        log = draw(st.sampled_from(logs))
        kept = draw(st.integers(0, len(log)))
        logs.append(log[:kept] + [epoch] * draw(st.integers(1, 3)))
    return _prefix(draw, logs), _prefix(draw, logs)


def _prefix(draw: st.DrawFn, logs: list[list[int]]) -> list[int]:
    log = draw(st.sampled_from(logs))
    return log[: draw(st.integers(0, len(log)))]


def log_of(*epochs: int) -> MemoryLog:
    log = MemoryLog()
    for epoch in epochs:
        batch = build_batch([Record(timestamp=0, value=b"")])
        assign(batch, 0, log.end_offset, epoch)
        log.append(batch)
    return log


def compared(log: MemoryLog, offset: int, epoch: int) -> LogComparison:
    return compare_end(PendingLog(log), OffsetAndEpoch(offset, epoch))


def test_an_end_that_the_leader_has_is_valid() -> None:
    log = log_of(1, 1, 3)

    assert compared(log, 0, 0) is LogComparison.VALID
    assert compared(log, 2, 1) is LogComparison.VALID
    assert compared(log, 3, 3) is LogComparison.VALID


def test_an_end_that_the_leader_does_not_have_diverges() -> None:
    log = log_of(1, 1, 3)

    assert compared(log, 3, 1) is LogComparison.DIVERGING
    assert compared(log, 3, 2) is LogComparison.DIVERGING
    assert compared(log, 4, 3) is LogComparison.DIVERGING


def test_what_only_a_snapshot_has_is_before_it() -> None:
    log = log_of(1, 1, 3, 3)
    log.take_snapshot(3, VoterSet())

    assert compared(log, 0, 0) is LogComparison.BEFORE_SNAPSHOT
    assert compared(log, 3, 1) is LogComparison.BEFORE_SNAPSHOT
    assert compared(log, 4, 2) is LogComparison.BEFORE_SNAPSHOT
    assert compared(log, 3, 3) is LogComparison.VALID
    assert compared(log, 4, 3) is LogComparison.VALID


@given(logs=two_logs())
def test_each_round_cuts_until_the_logs_agree(logs: tuple[list[int], list[int]]) -> None:
    leader_epochs, follower_epochs = logs
    leader, follower = log_of(*leader_epochs), log_of(*follower_epochs)

    for _ in range(len(follower_epochs) + 1):
        end = PendingLog(follower).end
        if compared(leader, *end) is LogComparison.VALID:
            break
        diverging = PendingLog(leader).end_offset_for_epoch(end.epoch)
        offset = truncation_offset(PendingLog(follower), diverging)
        assert offset < end.offset
        follower.truncate_to(offset)

    kept = [batch.epoch for batch in follower.batches]
    assert kept == leader_epochs[: len(kept)]
