"""Chooses each row's partition like Kafka's producer.

The row's column `partition` decides, or else its key by murmur2. Rows with neither stick to one
partition until a portion is written, then move to the next one.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint32]
Partitions = npt.NDArray[np.int32]

_SEED = 0x9747B28C
_FACTOR = np.uint32(0x5BD1E995)
_BLOCK_BYTES = 4
_TAIL_SHIFTS = (0, 8, 16)


class NoSuchPartition(ValueError):
    """A row names a partition that its topic does not have."""


def choose_partitions(
    topic: str, keys: pa.Array | None, wished: pa.Array | None, count: int, sticky: int, rows: int
) -> Partitions:
    """The partition of each row; `sticky` is for rows with neither key nor partition."""
    if keys is None:
        chosen = np.full(rows, sticky % count, np.int32)
    else:
        chosen = partitions_of_keys(keys, count, sticky % count)
    if wished is not None and wished.null_count < rows:
        numbers = pc.fill_null(wished.cast(pa.int64()), -1).to_numpy()
        has_wish = wished.is_valid().to_numpy(zero_copy_only=False)
        wrong = has_wish & ((numbers < 0) | (numbers >= count))
        if wrong.any():
            raise NoSuchPartition(
                f"topic {topic} has partitions 0 to {count - 1}, a row asks for {numbers[wrong][0]}"
            )
        chosen = np.where(has_wish, numbers, chosen).astype(np.int32)
    return chosen


def partitions_of_keys(keys: pa.Array, count: int, without_key: int) -> Partitions:
    """The partition of each key; `without_key` is for null."""
    if keys.null_count == len(keys):
        return np.full(len(keys), without_key, np.int32)
    hashes = murmur2(keys.cast(pa.binary())) & np.uint32(0x7FFFFFFF)
    partitions = (hashes % np.uint32(count)).astype(np.int32)
    has_key = keys.is_valid().to_numpy(zero_copy_only=False)
    return np.where(has_key, partitions, np.int32(without_key))


def murmur2(keys: pa.Array) -> Hashes:
    """Hash of each item of a binary array; arbitrary for null."""
    start, size, data = _buffers(keys)
    words = np.ndarray((len(data) - _BLOCK_BYTES + 1,), "<u4", data, strides=(1,))
    hashes = np.uint32(_SEED) ^ size.astype(np.uint32)
    with np.errstate(over="ignore"):
        _mix_blocks(hashes, words, start, size)
        _mix_tails(hashes, np.frombuffer(data, np.uint8), start, size)
        hashes ^= hashes >> np.uint32(13)
        hashes *= _FACTOR
        hashes ^= hashes >> np.uint32(15)
    return hashes


def _mix_blocks(
    hashes: Hashes, words: Hashes, start: npt.NDArray[np.int64], size: npt.NDArray[np.int64]
) -> None:
    blocks = size // _BLOCK_BYTES
    rows = np.flatnonzero(blocks)
    index = 0
    while len(rows):
        block = words[start[rows] + index * _BLOCK_BYTES] * _FACTOR
        block ^= block >> np.uint32(24)
        block *= _FACTOR
        hashes[rows] = (hashes[rows] * _FACTOR) ^ block
        index += 1
        rows = rows[blocks[rows] > index]


def _mix_tails(
    hashes: Hashes,
    data: npt.NDArray[np.uint8],
    start: npt.NDArray[np.int64],
    size: npt.NDArray[np.int64],
) -> None:
    left = size % _BLOCK_BYTES
    tail = start + size - left
    for index, shift in enumerate(_TAIL_SHIFTS):
        rows = np.flatnonzero(left > index)
        hashes[rows] ^= data[tail[rows] + index].astype(np.uint32) << np.uint32(shift)
    rows = np.flatnonzero(left)
    hashes[rows] *= _FACTOR


def _buffers(
    keys: pa.Array,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], bytes]:
    """The start and length of each item, and the bytes with some padding."""
    _, offsets, data = keys.buffers()
    edges = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    first, last = int(edges[0]), int(edges[-1])
    content = b"" if data is None else bytes(memoryview(data)[first:last])
    positions = edges.astype(np.int64) - first
    return positions[:-1], np.diff(positions), content + bytes(_BLOCK_BYTES)
