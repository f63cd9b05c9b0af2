"""What blocking frameworks share: an event loop in a thread that receives and settles tasks, and a
producer. One per cluster and process, shared by all its connections.

A forked process inherits objects without their threads. They are never used there and never
collected: their destructors would wait for those threads or disturb the parent.
"""

import asyncio
import os
import threading
from asyncio import AbstractEventLoop
from collections.abc import Coroutine, Mapping
from typing import Any, Self, TypeVar

from ottla.client import Producer, ProducerConfig
from ottla.client.async_wire.cluster import Cluster
from ottla.client.delay import GivenHeaders
from ottla.client.wire.librdkafka_settings import security_of
from ottla.client.wire.topics import BROKER_DEFAULT
from ottla.integrations.task_queue import TaskQueue
from ottla.integrations.topics import TASK_CONFIG, ensure_task_topic

ENGINE_THREAD = "ottla-tasks"

T = TypeVar("T")

_Key = tuple[tuple[tuple[str, str], ...], str, float]  # Settings, group and lock.


class Engine:
    def __init__(self, config: ProducerConfig, group: str, lock_s: float) -> None:
        self.group = group
        self._pid = os.getpid()
        self._users_count = 0
        self._topics: set[str] = set()  # Known to exist.
        settings = config.settings()
        self.producer = Producer(config).start()
        self.loop: AbstractEventLoop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=ENGINE_THREAD, daemon=True)
        self._thread.start()
        self.cluster, self.tasks = self.call(self._open(settings, group, lock_s))

    @classmethod
    def shared(cls, config: ProducerConfig, group: str, lock_s: float) -> Self:
        """This process's engine; give it back with `release`."""
        settings = sorted((key, str(value)) for key, value in config.settings().items())
        key = tuple(settings), group, lock_s
        with _guard:
            engine = _engines.get(key)
            if engine is None:
                engine = _engines[key] = cls(config, group, lock_s)
            engine._users_count += 1
        assert isinstance(engine, cls)
        return engine

    def release(self) -> None:
        """Ends with its last user; unsettled tasks return at once."""
        if self.is_inherited:
            return
        with _guard:
            self._users_count -= 1
            if self._users_count:
                return
            for key in [key for key, engine in _engines.items() if engine is self]:
                del _engines[key]
        self.call(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.producer.close()

    @property
    def is_inherited(self) -> bool:
        """Whether it belongs to the process that this one was forked from."""
        return os.getpid() != self._pid

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def send(
        self, topic: str, value: bytes, headers: GivenHeaders, delay_s: float | None = None
    ) -> None:
        """Returns once all in-sync replicas have it."""
        self.producer.send(topic, value, headers=headers, deliver_after=delay_s).result()

    def ensure_topic(
        self,
        topic: str,
        *,
        partitions: int = BROKER_DEFAULT,
        config: Mapping[str, str] = TASK_CONFIG,
    ) -> None:
        if topic not in self._topics:
            self.call(ensure_task_topic(self.cluster, topic, partitions=partitions, config=config))
            self._topics.add(topic)

    def forget_topic(self, topic: str) -> None:
        self._topics.discard(topic)

    async def _open(
        self, settings: dict[str, Any], group: str, lock_s: float
    ) -> tuple[Cluster, TaskQueue]:
        cluster = Cluster(settings["bootstrap.servers"], security=security_of(settings))
        return cluster, TaskQueue(cluster, group, self.loop, lock_s=lock_s)

    async def _close(self) -> None:
        await self.tasks.close()
        self.cluster.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()


_guard = threading.Lock()
_engines: dict[_Key, Engine] = {}
_inherited: list[Engine] = []


def _on_forked() -> None:
    global _guard  # noqa: PLW0603
    _guard = threading.Lock()
    _inherited.extend(_engines.values())
    _engines.clear()


os.register_at_fork(after_in_child=_on_forked)
