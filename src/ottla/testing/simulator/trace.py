"""What happened in a run, line by line, and a hash that only equal runs share."""

import hashlib


class Trace:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, now: float, who: str, what: str) -> None:
        line = f"{now:11.6f} {who:<10} {what}"
        self.lines.append(line)
        self._hash.update(line.encode())

    def mix(self, data: bytes) -> None:
        """What is too much to read, such as every byte on the network, but must be the same."""
        self._hash.update(data)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
