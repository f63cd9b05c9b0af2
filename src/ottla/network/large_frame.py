"""A frame that is too large for the shared receive buffer, while it arrives.

Its buffer grows with what has arrived, so that a peer cannot make us allocate by announcing a size.
"""

GROWTH_FACTOR = 4
CAPACITY_MIN = 65_536


class LargeFrame:
    __slots__ = ("_buffer", "_end", "total", "view")

    def __init__(self, start: memoryview, total: int) -> None:
        self.total = total  # With the four bytes of the size.
        self._end = 0
        self._buffer = bytearray()
        self.view = memoryview(self._buffer)
        self._grow(start)

    def __len__(self) -> int:
        """The memory it takes."""
        return len(self._buffer)

    def space(self) -> memoryview:
        """Where the next bytes go. Never empty, and never past the end of the frame."""
        if self._end == len(self._buffer):
            self._grow(self.view)
        return self.view[self._end :]

    def received(self, size: int) -> bool:
        """Whether the frame is complete now."""
        self._end += size
        return self._end == self.total

    def _grow(self, content: memoryview) -> None:
        size = len(content)
        buffer = bytearray(min(self.total, max(CAPACITY_MIN, GROWTH_FACTOR * size)))
        buffer[:size] = content
        self._end = size
        self._buffer = buffer
        self.view = memoryview(buffer)
