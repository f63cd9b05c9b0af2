"""Topics of tasks: made with delivery at a later time, and of a name that brokers accept."""

import re
from typing import Final

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.topics import ensure_topic
from ottla.client.wire.topics import BROKER_DEFAULT

TASK_CONFIG: Final = {"delivery.delay.enable": "true"}

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")


def topic_name(queue: str) -> str:
    return _NOT_IN_NAMES.sub("_", queue)


async def ensure_task_topic(
    cluster: Cluster, topic: str, *, partitions: int = BROKER_DEFAULT
) -> None:
    """One that exists stays as it is."""
    await ensure_topic(cluster, topic, partitions=partitions, config=TASK_CONFIG)
