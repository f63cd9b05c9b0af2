"""A frame that is too large for the shared receive buffer, while it arrives.

It takes as much memory as has arrived of it, whatever size it announced. Arriving bytes are
appended to a bytearray, which grows in proportion to its size and by moving pages where the system
can, so that all the copying is linear. A frame that fits the spare buffer of an earlier one is
received there, without a copy.
"""


class LargeFrame:
    __slots__ = ("_in_place", "arrived", "buffer", "total")

    def __init__(self, start: memoryview, total: int, spare: bytearray | None = None) -> None:
        self.total = total  # Including the four bytes of the size.
        self.arrived = len(start)
        self._in_place = spare is not None
        if spare is None:
            self.buffer = bytearray(start)
        else:
            assert len(spare) >= total
            self.buffer = spare
            spare[: self.arrived] = start

    def __len__(self) -> int:
        """The memory it takes."""
        return len(self.buffer)

    @property
    def is_complete(self) -> bool:
        return self.arrived == self.total

    @property
    def view(self) -> memoryview:
        """The frame, once it is complete."""
        return memoryview(self.buffer)[: self.total]

    def space(self, shared: memoryview) -> memoryview:
        """Where the next bytes go. Never empty, and never past the end of the frame."""
        if self._in_place:
            return memoryview(self.buffer)[self.arrived : self.total]
        return shared[: self.total - self.arrived]

    def take(self, size: int, shared: memoryview) -> bool:
        """`size` bytes have arrived in `space`; returns whether the frame is complete."""
        if not self._in_place:
            self.buffer += shared[:size]
        self.arrived += size
        return self.is_complete
