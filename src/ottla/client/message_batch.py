"""The result of a poll: a list whose messages are created on access.

Most callers iterate over a batch once, so each message is freed before the next one is created.
Creating five hundred up front would keep the garbage collector busy.
"""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import confluent_kafka

from ottla.client.messages import Message

_value_of = confluent_kafka.Message.value


class MessageBatch(Sequence[Message]):
    """Accessing an item twice creates two objects, which compare equal."""

    __slots__ = ("_message_type", "_raws")

    def __init__(self, message_type: type[Message], raws: Sequence[Any]) -> None:
        self._message_type = message_type
        self._raws = raws

    def __iter__(self) -> Iterator[Message]:
        raws = self._raws
        return map(self._message_type, zip(map(_value_of, raws), raws, strict=True))

    def __len__(self) -> int:
        return len(self._raws)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> "MessageBatch": ...

    def __getitem__(self, index: int | slice) -> "Message | MessageBatch":
        raw: Any = self._raws[index]
        if isinstance(index, slice):
            return MessageBatch(self._message_type, raw)
        return self._message_type((_value_of(raw), raw))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
