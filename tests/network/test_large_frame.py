from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.network.large_frame import CAPACITY_MIN, GROWTH_FACTOR, LargeFrame


@settings(max_examples=50)
@given(st.integers(1, 1_000_000), st.lists(st.integers(5_000, 300_000), min_size=1))
def test_the_buffer_grows_with_what_arrives_and_ends_with_the_frame(
    total: int, sizes: list[int]
) -> None:
    content = (bytes(range(251)) * (total // 251 + 1))[:total]
    arrived = min(total - 1, sizes[0])
    frame = LargeFrame(memoryview(content[:arrived]), total)
    complete = False
    number = 0
    while not complete:
        space = frame.space()
        assert len(frame) <= min(total, max(CAPACITY_MIN, GROWTH_FACTOR * arrived))
        assert 0 < len(space) <= total - arrived
        size = min(len(space), sizes[number % len(sizes)])
        space[:size] = content[arrived : arrived + size]
        complete = frame.received(size)
        arrived += size
        number += 1
    assert arrived == total
    assert frame.view == content
