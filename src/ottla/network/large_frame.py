"""A frame that is too large for the shared receive buffer, while it arrives.

Its buffer grows with what has arrived, so that a peer cannot make us allocate by announcing a size.
A frame that fits the spare buffer of an earlier one takes that and need not grow.
"""

GROWTH_FACTOR = 4
CAPACITY_MIN = 65_536


class LargeFrame:
    __slots__ = ("_end", "buffer", "total", "view")

    def __init__(self, start: memoryview, total: int, spare: bytearray | None = None) -> None:
        self.total = total  # With the four bytes of the size.
        self._end = 0
        self.buffer = bytearray()
        self.view = memoryview(self.buffer)
        if spare is None:
            self._grow(start)
        else:
            assert len(spare) >= total
            self._take(spare, start)

    def __len__(self) -> int:
        """The memory it takes."""
        return len(self.buffer)

    @property
    def is_complete(self) -> bool:
        return self._end == self.total

    def space(self) -> memoryview:
        """Where the next bytes go. Never empty, and never past the end of the frame."""
        if self._end == len(self.view):
            self._grow(self.view)
        return self.view[self._end :]

    def received(self, size: int) -> bool:
        """Whether the frame is complete now."""
        self._end += size
        return self.is_complete

    def _grow(self, content: memoryview) -> None:
        capacity = max(CAPACITY_MIN, GROWTH_FACTOR * len(content))
        self._take(bytearray(min(self.total, capacity)), content)

    def _take(self, buffer: bytearray, content: memoryview) -> None:
        self._end = len(content)
        self.buffer = buffer
        self.view = memoryview(buffer)[: self.total]
        self.view[: self._end] = content
