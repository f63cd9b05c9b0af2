"""Reads many zigzag varints at once, as unaligned eight-byte words."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.records.batch import Buffer

Integers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

_WORD_BYTES = 8
_ONE = np.uint64(1)
_CONTINUED = np.uint64(0x80)
_CONTINUED_TWICE = np.uint64(0x8080)
_LOW_BYTE = np.uint64(0x7F)
_LOW_BYTES = np.uint64(0x7F7F7F7F7F7F7F7F)
_STOPS = np.uint64(0x8080808080808080)

# Seven-bit groups are merged in three steps: pairs, then fours, then eights.
_GATHER = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)


class Unusual(Exception):
    """Something that this reader does not support, or damage; the slow decoder tells which."""


class Words:
    """A buffer as overlapping little-endian words, one at each byte."""

    def __init__(self, buffer: Buffer) -> None:
        if len(buffer) < _WORD_BYTES:
            buffer = bytes(buffer) + bytes(_WORD_BYTES)
        last = len(buffer) - _WORD_BYTES
        self._last = last
        self._words: _Words = np.ndarray((last + 1,), "<u8", buffer, strides=(1,))

    def at(self, positions: Integers) -> _Words:
        """Words at non-decreasing positions; zeros past the end of the buffer."""
        try:
            if not len(positions) or positions[-1] <= self._last:
                return self._words[positions]
            behind = positions - self._last
            np.maximum(behind, 0, out=behind)
            if behind[-1] >= _WORD_BYTES:
                raise Unusual
            words: _Words = self._words[positions - behind]
        except IndexError:
            raise Unusual from None
        words >>= (behind << 3).view(np.uint64)
        return words

    def varints(self, positions: Integers) -> tuple[Integers, Integers]:
        """The numbers at the positions, and the positions after them."""
        words = self.at(positions)
        if not (words & _CONTINUED).any():
            return unzigzag(words & _LOW_BYTE), positions + 1
        if not ((words & _CONTINUED_TWICE) == _CONTINUED_TWICE).any():
            return _read_pairs(words, positions)
        return _read_long(words, positions)


def unzigzag(numbers: Any) -> Integers:
    signed: Integers = ((numbers >> _ONE) ^ (~(numbers & _ONE) + _ONE)).view(np.int64)
    return signed


def _read_pairs(words: _Words, positions: Integers) -> tuple[Integers, Integers]:
    """All have one or two bytes."""
    is_pair = (words & _CONTINUED) >> np.uint64(7)
    high = (words >> _ONE) & np.uint64(0x3F80)
    numbers = (words & _LOW_BYTE) | (high * is_pair)
    return unzigzag(numbers), positions + is_pair.view(np.int64) + 1


def _read_long(words: _Words, positions: Integers) -> tuple[Integers, Integers]:
    """Up to eight bytes, enough for lengths of any kind and 2,000,000 years of milliseconds."""
    stops = ~words & _STOPS
    if not stops.all():
        raise Unusual
    used = stops ^ (stops - _ONE)  # Every bit up to the stop bit.
    numbers = words & used & _LOW_BYTES
    for low, high, shift in _GATHER:
        numbers = (numbers & low) | ((numbers & high) >> shift)
    sizes = np.bitwise_count(used).astype(np.int64) >> 3
    return unzigzag(numbers), positions + sizes


def varint_sizes(numbers: Integers) -> Integers:
    """The encoded size of each."""
    unsigned = _zigzag(numbers)
    sizes = np.ones(len(numbers), np.int64)
    limit = 0x80
    largest = int(unsigned.max()) if len(unsigned) else 0
    while limit <= largest:
        sizes += unsigned >= np.uint64(limit)
        limit <<= 7
    return sizes


def encode_varints(*columns: Integers) -> Any:
    """An Arrow array of byte strings: the numbers of each row, concatenated."""
    sizes = [varint_sizes(numbers) for numbers in columns]
    ends = np.cumsum(sum(sizes))
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    data = np.empty(int(offsets[-1]), np.uint8)
    position = offsets[:-1].astype(np.int64)
    for numbers, size in zip(columns, sizes, strict=True):
        _scatter(data, position, _zigzag(numbers), size)
        position += size
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(ends), buffers, null_count=0)


def _zigzag(numbers: Integers) -> _Words:
    encoded: _Words = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    return encoded


def _scatter(
    data: npt.NDArray[np.uint8], position: Integers, unsigned: _Words, sizes: Integers
) -> None:
    """Writes the lowest seven bits of each, then the next seven of the longer ones."""
    while len(position):
        is_long = sizes > 1
        low = (unsigned & _LOW_BYTE).astype(np.uint8)
        data[position] = low | (is_long.view(np.uint8) << np.uint8(7))
        if not is_long.any():
            return
        position, unsigned, sizes = (
            position[is_long] + 1,
            unsigned[is_long] >> np.uint64(7),
            sizes[is_long] - 1,
        )
