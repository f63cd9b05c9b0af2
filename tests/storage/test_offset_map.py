from ottla.storage.offset_map import ENTRY_BYTES, OffsetMap


def test_the_last_offset_of_a_key_stays() -> None:
    offsets = OffsetMap(1 << 20)
    for key in (b"", b"short", b"k" * 15, b"k" * 16, b"long" * 100):
        assert offsets.get(key) == -1
        offsets.put(key, 3)
        offsets.put(key, 7)
        assert offsets.get(key) == 7
    assert len(offsets) == 5


def test_memory_is_bounded() -> None:
    offsets = OffsetMap(3 * ENTRY_BYTES)
    for number in range(3):
        assert not offsets.is_full
        offsets.put(b"%d" % number, number)
    assert offsets.is_full
    assert not OffsetMap(0).is_full
