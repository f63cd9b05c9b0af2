from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.network.large_frame import LargeFrame

SHARED_BYTES = 262_144


@settings(max_examples=50)
@given(
    st.integers(1, 1_000_000),
    st.lists(st.integers(1_000, 300_000), min_size=1),
    st.sampled_from([None, 0, 5_000]),
)
def test_what_arrives_becomes_the_frame_and_nothing_past_it(
    total: int, sizes: list[int], spare_rest: int | None
) -> None:
    shared = memoryview(bytearray(SHARED_BYTES))
    content = (bytes(range(251)) * (total // 251 + 1))[:total]
    arrived = min(total - 1, sizes[0])
    spare = None if spare_rest is None else bytearray(total + spare_rest)
    frame = LargeFrame(memoryview(content[:arrived]), total, spare)
    complete = False
    number = 0
    while not complete:
        space = frame.space(shared)
        assert 0 < len(space) <= total - arrived
        size = min(len(space), sizes[number % len(sizes)])
        space[:size] = content[arrived : arrived + size]
        complete = frame.take(size, shared)
        arrived += size
        number += 1
        if spare is None:
            assert len(frame) == arrived
    assert frame.arrived == total
    assert frame.view == content


def test_a_frame_takes_what_has_arrived_and_not_what_it_announced() -> None:
    assert len(LargeFrame(memoryview(b"12345"), 100 << 20)) == 5
