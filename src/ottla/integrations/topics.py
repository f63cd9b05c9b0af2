"""Task topics: created with delayed delivery, under names that brokers accept."""

import logging
import re
from collections.abc import Mapping
from typing import Final

from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.types import TopicName

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.configs import ResourceType, alter_configs, describe_configs
from ottla.client.async_wire.topics import ensure_topic
from ottla.client.wire.errors import BrokerError, validate_answer
from ottla.client.wire.topics import BROKER_DEFAULT
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds

logger = logging.getLogger(__name__)

DELAY: Final = "delivery.delay.enable"
TASK_CONFIG: Final = {DELAY: "true"}

_TIMEOUT_MS: Final = 30_000
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")


def topic_name(queue: str) -> str:
    return _NOT_IN_NAMES.sub("_", queue)


async def ensure_task_topic(
    cluster: Cluster,
    topic: str,
    *,
    partitions: int = BROKER_DEFAULT,
    config: Mapping[str, str] = TASK_CONFIG,
) -> None:
    """Leaves an existing topic unchanged, except that delays are enabled for tasks that rely on
    them.
    """
    if topic not in await cluster.topics([topic]):
        await ensure_topic(cluster, topic, partitions=partitions, config=config)
    elif DELAY in config:
        await _enable_delays(cluster, topic)


async def _enable_delays(cluster: Cluster, topic: str) -> None:
    async def enable() -> None:
        configs = await describe_configs(cluster, ResourceType.TOPIC, topic, [DELAY])
        if DELAY in configs and configs[DELAY].value != "true":
            await alter_configs(cluster, ResourceType.TOPIC, topic, {DELAY: "true"})
            logger.info("set %s=true for topic %s, for delayed tasks", DELAY, topic)

    try:
        await cluster.retry(enable)
    except BrokerError as error:
        logger.warning("tasks in topic %s may run before their time: %s", topic, error)


async def delete_topic(cluster: Cluster, topic: str) -> None:
    """A missing topic is not an error."""
    wanted = DeleteTopicState(name=TopicName(topic), topic_id=None)
    request = DeleteTopicsRequest(topics=(wanted,), timeout=milliseconds(_TIMEOUT_MS))

    async def delete() -> None:
        for result in (await (await cluster.controller()).call(request)).responses:
            if result.error_code is not ErrorCode.unknown_topic_or_partition:
                validate_answer(result.error_code, f"the deletion of topic {topic}")

    await cluster.retry(delete)
