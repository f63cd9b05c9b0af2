"""The next record of each key, in share groups with `share.record.order=key`.

Every unfinished record is in the queue of its key, in offset order, and only the first of a queue
may be delivered. It stays first while it is held, waits until it is due, or is available; it leaves
the queue when it is finished, or waits only for its dead letter. Records without a key are in no
queue.

Keys are identified by a number, such as a hash. Two keys with the same number share a queue, which
is slower but never wrong. Nothing of this is persisted: a new leader learns the keys from the log.
"""

from collections import deque
from collections.abc import Iterable


class KeyOrder:
    def __init__(self, records: Iterable[tuple[int, int]] = ()) -> None:
        """Ascending offsets of unfinished records, with their key numbers."""
        self._keys: dict[int, int] = {}
        # Ascending; an offset no longer in `_keys` has left its queue. The first is still there.
        self._lines: dict[int, deque[int]] = {}
        for offset, key in records:
            self.add(offset, key)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, offset: int, key: int | None) -> bool:
        """Add a record after all earlier ones; returns whether it is the first of its key."""
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
        """Remove it from its queue; returns the record that is first now, if this one was."""
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
        """Remove all before an offset; returns the records that became the first of their keys."""
        firsts = (self.finish(offset) for offset in sorted(self._keys) if offset < end_offset)
        return [first for first in firsts if first is not None and first >= end_offset]
