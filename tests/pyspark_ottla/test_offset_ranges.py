from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.topics import TopicPartition
from pyspark_ottla.offset_ranges import (
    OffsetRange,
    OffsetRanges,
    join_ranges,
    limit_offsets,
    split_ranges,
)

sizes = st.lists(st.integers(1, 10_000), min_size=1, max_size=6)


def made(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange("t", index, 100, 100 + size, None) for index, size in enumerate(sizes)]


@given(sizes, st.integers(1, 20))
def test_split_ranges_cover_what_there_was_and_nothing_twice(sizes: list[int], count: int) -> None:
    whole = made(sizes)
    parts = split_ranges(whole, count)
    assert len(parts) >= min(count, sum(sizes))
    assert all(part.start < part.end for part in parts)
    for item in whole:
        own = [part for part in parts if part.partition == item.partition]
        assert own[0].start == item.start
        assert own[-1].end == item.end
        assert all(a.end == b.start for a, b in pairwise(own))


def test_ranges_are_not_split_unless_asked() -> None:
    assert split_ranges(made([5, 1000]), None) == made([5, 1000])
    assert split_ranges(made([5, 1000]), 2) == made([5, 1000])
    assert split_ranges([], 5) == []


def test_parts_are_even() -> None:
    parts = split_ranges(made([900]), 3)
    assert [part.end - part.start for part in parts] == [300, 300, 300]


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=6), st.integers(1, 6_000))
def test_a_limited_batch_moves_every_partition_and_ends_in_time(
    sizes: list[int], rows_max: int
) -> None:
    starts = {TopicPartition("t", index): 7 for index in range(len(sizes))}
    ends = {TopicPartition("t", index): 7 + size for index, size in enumerate(sizes)}
    limited = limit_offsets(starts, ends, rows_max)
    taken = {partition: limited[partition] - starts[partition] for partition in ends}
    assert sum(taken.values()) <= rows_max + len(sizes)
    for partition, end in ends.items():
        assert starts[partition] <= limited[partition] <= end
        assert taken[partition] > 0 or end == starts[partition]


def test_a_partition_that_became_shorter_is_left_where_it_ends() -> None:
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    limited = limit_offsets({first: 50, second: 0}, {first: 10, second: 100}, 20)
    assert limited == {first: 10, second: 20}


def test_small_neighbours_are_read_by_one_task() -> None:
    ranges = made([3, 4, 3, 9, 2, 20, 1])
    joined = join_ranges(ranges, 10)
    assert joined == [
        OffsetRanges(tuple(ranges[:3])),
        ranges[3],
        ranges[4],
        ranges[5],
        ranges[6],
    ]
    assert join_ranges([], 10) == []
