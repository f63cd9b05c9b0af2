"""Consumers that a client creates, polls and deletes by name, one librdkafka consumer each.

They exist in this gateway only. An idle one is closed after a while. Calls that may wait run in
threads; calls on the same instance are serialized.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, Message

from ottla.gateway.core.access import Access
from ottla.gateway.core.errors import TooBusy

T = TypeVar("T")

INSTANCES_MAX: Final = 200
IDLE_S_MAX: Final = 300.0
_LOOK_S: Final = 10.0
_POLL_COUNT: Final = 500

Key = tuple[str, str]  # Group and name.


class InstanceExists(Exception):
    pass


class NoInstance(Exception):
    pass


@dataclass(slots=True)
class Instance:
    consumer: Consumer
    format: str
    timeout_ms: int  # Default wait of a poll.
    topics: list[str] = field(default_factory=list)  # Subscribed.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    used_at: float = field(default_factory=time.monotonic)

    async def run(self, call: Callable[[Consumer], T]) -> T:
        async with self.lock:
            self.used_at = time.monotonic()
            try:
                return await asyncio.to_thread(call, self.consumer)
            finally:
                self.used_at = time.monotonic()


class ConsumerInstances:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._instances: dict[Key, Instance] = {}
        self._looking: asyncio.Task[None] | None = None

    async def create(
        self, key: Key, format_name: str, timeout_ms: int, config: Mapping[str, Any]
    ) -> Instance:
        if key in self._instances:
            raise InstanceExists
        if len(self._instances) >= INSTANCES_MAX:
            raise TooBusy(f"this gateway has {INSTANCES_MAX} consumers already")
        settings = {**self._access.client_settings(), "group.id": key[0], **config}
        instance = Instance(Consumer(settings), format_name, timeout_ms)
        self._instances[key] = instance
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._close_idle())
        return instance

    def get(self, key: Key) -> Instance:
        instance = self._instances.get(key)
        if instance is None:
            raise NoInstance
        instance.used_at = time.monotonic()
        return instance

    async def delete(self, key: Key) -> None:
        instance = self._instances.pop(key, None)
        if instance is None:
            raise NoInstance
        await instance.run(lambda consumer: consumer.close())

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        for key in list(self._instances):
            await self.delete(key)

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            now = time.monotonic()
            for key, instance in list(self._instances.items()):
                if now - instance.used_at > IDLE_S_MAX and not instance.lock.locked():
                    await self.delete(key)


def poll(consumer: Consumer, timeout_ms: int, bytes_max: int) -> "list[Message[Any, Any]]":
    """What is available, as soon as something is. Raises KafkaException for errors that persist."""
    found: list[Message[Any, Any]] = []
    deadline = time.monotonic() + timeout_ms / 1000
    size = 0
    while size < bytes_max and len(found) < _POLL_COUNT:
        wait_s = 0.0 if found else max(0.0, deadline - time.monotonic())
        message = consumer.poll(wait_s)
        if message is None:
            if found or time.monotonic() >= deadline:
                break
            continue
        if message.error() is not None:
            continue  # Transient, or shows up again.
        found.append(message)
        size += len(message.value() or b"") + len(message.key() or b"")
    return found
