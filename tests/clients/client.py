"""The interface of a Kafka client, so that each behaviour is tested with every client."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

Headers = tuple[tuple[str, bytes], ...]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMEOUT_S = 120  # The machine may be busy.


class Sent(NamedTuple):
    key: bytes | None = None
    value: bytes | None = b"value"
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int = 0


class Received(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


class ProduceOptions(NamedTuple):
    codec: str = "none"
    acks: int | str = "all"
    idempotent: bool = True
    request_bytes_max: int = 2_000_000  # More than the broker accepts by default.


DEFAULT_OPTIONS = ProduceOptions()


class Refused(Exception):
    """The broker answered with an error code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code


class Client(Protocol):
    def produce(
        self, topic: str, records: Sequence[Sent], options: ProduceOptions = ...
    ) -> list[int]:
        """The offsets of the records; -1 if the broker does not return one."""
        ...

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Received]: ...

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        """The log start offset and the end offset."""
        ...

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None: ...

    def create_topic(
        self, topic: str, partitions: int = ..., config: Mapping[str, str] = ...
    ) -> None: ...

    def delete_topic(self, topic: str) -> None: ...

    def add_partitions(self, topic: str, total_count: int) -> None: ...

    def partitions(self, topic: str) -> list[int]: ...

    def topics(self) -> set[str]: ...

    def topic_config(self, topic: str) -> dict[str, str | None]: ...

    def set_topic_config(self, topic: str, key: str, value: str) -> None: ...
