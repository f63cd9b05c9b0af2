from ottla.network.large_frame import LargeFrame
from ottla.network.partial import api_key, arrived_bytes, missing_bytes

FRAME = b"\0\0\0\x08\0\x12345678"


def test_of_little_bytes() -> None:
    assert (missing_bytes(b"\0\0"), api_key(b"\0\0")) == (2, None)
    assert (missing_bytes(FRAME[:5]), api_key(FRAME[:5])) == (7, None)
    assert (missing_bytes(FRAME[:7]), api_key(FRAME[:7])) == (5, 0x12)


def test_frames_that_wait_miss_nothing_that_could_be_counted() -> None:
    assert missing_bytes(FRAME + FRAME) == 1


def test_of_a_large_frame() -> None:
    frame = LargeFrame(memoryview(FRAME[:7]), 12)
    assert (arrived_bytes(frame), missing_bytes(frame), api_key(frame)) == (7, 5, 0x12)
