"""Which record of each key comes next, in share groups with `share.record.order=key`.

A record that is not done stands in the line of its key, in the order of offsets, and only the first
of a line may be handed out. It stays the first while somebody has it, while it waits for its time
and while nobody has it; it leaves the line when it is done, or waits for nothing but its dead
letter. Records without a key stand in no line.

Keys are known by a number, such as a hash. Two keys with one number share a line, which is slower
and never wrong. Nothing of this is written down: a new leader learns the keys from the log.
"""

from collections import deque
from collections.abc import Iterable


class KeyOrder:
    def __init__(self, records: Iterable[tuple[int, int]] = ()) -> None:
        """Ascending offsets of records that are not done, and the numbers of their keys."""
        self._keys: dict[int, int] = {}
        # Ascending; offsets that have no key any more have left the line. The first one has.
        self._lines: dict[int, deque[int]] = {}
        for offset, key in records:
            self.add(offset, key)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, offset: int, key: int | None) -> bool:
        """A later record than all that were added before; whether it is the first of its key."""
        if key is None:
            return True
        self._keys[offset] = key
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = deque((offset,))
            return True
        assert line[-1] < offset, "records are added in the order of the log"
        line.append(offset)
        return False

    def is_first(self, offset: int) -> bool:
        key = self._keys.get(offset)
        return key is None or self._lines[key][0] == offset

    def finish(self, offset: int) -> int | None:
        """It leaves its line; the record that is the first now, if it was before."""
        key = self._keys.pop(offset, None)
        if key is None:
            return None
        line = self._lines[key]
        if line[0] != offset:
            return None
        while line and line[0] not in self._keys:
            line.popleft()
        if not line:
            del self._lines[key]
            return None
        return line[0]

    def finish_before(self, end_offset: int) -> list[int]:
        """All before an offset leave; the records that are the first of their keys since."""
        firsts = (self.finish(offset) for offset in sorted(self._keys) if offset < end_offset)
        return [first for first in firsts if first is not None and first >= end_offset]
