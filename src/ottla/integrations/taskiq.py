"""A Taskiq broker.

    from ottla.integrations.taskiq import OttlaBroker

    broker = OttlaBroker("localhost:9092")

A task is a record in a topic; workers are consumers in one share group. The label `delay`, in
seconds, is kept by Ottla's brokers, as are the delays of SmartRetryMiddleware. The label
`queue_name` selects one of the queues.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any, Final

from taskiq import AckableMessage, AsyncBroker, BrokerMessage

from ottla.client.aio import Producer
from ottla.client.async_wire.cluster import Cluster
from ottla.client.config import ProducerConfig
from ottla.client.share_wire.settling import ACCEPT
from ottla.client.wire.librdkafka_settings import security_of
from ottla.integrations.task_queue import LOCK_S, TaskQueue
from ottla.integrations.topics import ensure_task_topic, topic_name

DELAY_LABEL: Final = "delay"
QUEUE_LABEL: Final = "queue_name"
TASK_ID_HEADER: Final = "taskiq-id"
TASK_NAME_HEADER: Final = "taskiq-name"


class OttlaBroker(AsyncBroker):
    def __init__(
        self,
        bootstrap_servers: Sequence[str] | str = (),
        *,
        queues: Sequence[str] = ("taskiq",),
        group: str = "taskiq",
        lock_s: float = LOCK_S,
        **settings: Any,
    ) -> None:
        """Tasks go to the first queue unless their label names another; workers receive from all
        queues. A dead worker keeps its tasks for at most `lock_s` more seconds.

        `settings` are fields of ottla.client.ProducerConfig, such as the login.
        """
        super().__init__()
        self._queues = [topic_name(queue) for queue in queues]
        self._group = group
        self._lock_s = lock_s
        self._config = ProducerConfig(bootstrap_servers=bootstrap_servers, **settings)
        self._cluster: Cluster | None = None
        self._producer: Producer | None = None
        self._tasks: TaskQueue | None = None

    async def startup(self) -> None:
        await super().startup()
        settings = self._config.settings()
        self._cluster = Cluster(settings["bootstrap.servers"], security=security_of(settings))
        for queue in self._queues:
            await ensure_task_topic(self._cluster, queue)
        self._producer = await Producer(self._config).start()

    async def shutdown(self) -> None:
        """Unacknowledged tasks return to the other workers at once."""
        if self._tasks is not None:
            await self._tasks.close()
        if self._producer is not None:
            await self._producer.close()
        if self._cluster is not None:
            self._cluster.close()
        self._tasks = self._producer = self._cluster = None
        await super().shutdown()

    async def kick(self, message: BrokerMessage) -> None:
        """Returns once the brokers have the task."""
        if self._producer is None:
            raise RuntimeError("call `await broker.startup()` before tasks are sent")
        delay = message.labels.get(DELAY_LABEL)
        written = await self._producer.send(
            self._queue_of(message),
            message.message,
            headers=[(TASK_ID_HEADER, message.task_id), (TASK_NAME_HEADER, message.task_name)],
            deliver_after=None if delay is None else max(0.0, float(delay)),
        )
        await written

    def _queue_of(self, message: BrokerMessage) -> str:
        named = message.labels.get(QUEUE_LABEL)
        if named is None:
            return self._queues[0]
        queue = topic_name(str(named))
        if queue not in self._queues:
            raise ValueError(f"no queue {named!r}; the broker has {', '.join(self._queues)}")
        return queue

    async def listen(self) -> AsyncGenerator[bytes | AckableMessage, None]:
        if self._cluster is None:
            raise RuntimeError("call `await broker.startup()` before tasks are received")
        self._tasks = tasks = TaskQueue(
            self._cluster, self._group, asyncio.get_running_loop(), lock_s=self._lock_s
        )
        async for delivery in tasks.deliveries(self._queues):
            yield AckableMessage(data=delivery.value, ack=partial(tasks.settle, delivery, ACCEPT))
