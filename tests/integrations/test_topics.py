import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.client import Admin
from ottla.client.async_wire.cluster import Cluster
from ottla.integrations.topics import DELAY, ensure_task_topic
from ottla.testing import EmbeddedBroker


def run(servers: str, use: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        cluster = Cluster(servers)
        try:
            await use(cluster)
        finally:
            cluster.close()

    asyncio.run(main())


def test_tasks_can_be_delayed_in_a_topic_that_was_there_before(
    ottla_broker: EmbeddedBroker,
) -> None:
    old, new = ottla_broker.topic("old"), f"{ottla_broker.topic('other')}-new"
    admin = Admin(bootstrap_servers=ottla_broker.bootstrap_servers)
    admin.set_configs({"retention.ms": "60000"}, topic=old)
    assert admin.configs(topic=old)[DELAY] == "false"

    async def ensure(cluster: Cluster) -> None:
        for _ in range(2):
            await ensure_task_topic(cluster, old)
            await ensure_task_topic(cluster, new)

    run(ottla_broker.bootstrap_servers, ensure)
    for topic in (old, new):
        assert admin.configs(topic=topic)[DELAY] == "true"
    assert admin.configs(topic=old)["retention.ms"] == "60000"


def test_a_worker_that_may_not_change_the_topic_says_so(
    ottla_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    topic = ottla_broker.topic("old")
    ottla_broker.faults.fail_next("IncrementalAlterConfigs", "TOPIC_AUTHORIZATION_FAILED")
    run(ottla_broker.bootstrap_servers, lambda cluster: ensure_task_topic(cluster, topic))
    assert "may run before their time: the configuration of topic" in caplog.text
