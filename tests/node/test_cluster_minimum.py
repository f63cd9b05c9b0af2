import asyncio
import dataclasses

import pytest

from ottla.node.config import load_config
from ottla.node.environment import Environment
from ottla.node.node import Node
from ottla.node.serve_settings import ServeSettings
from ottla.storage.faulty_filesystem import FaultyFilesystem

MINIMUM = "min.insync.replicas"


async def minimum_of_cluster(disk: FaultyFilesystem, configured: str = "") -> str | None:
    """The value after a run of the only node, with this value in its configuration, if any."""
    overrides = {MINIMUM: configured} if configured else {}
    settings = ServeSettings(host="127.0.0.1", port=0, overrides=overrides)
    environment = dataclasses.replace(Environment.real(), filesystem=disk)
    node = Node(load_config(settings, {}), environment)
    await node.start()
    await node.stop()
    return node.image.default_broker_configs().get(MINIMUM)


def test_the_minimum_of_the_first_nodes_file_is_the_clusters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        disk = FaultyFilesystem()
        assert await minimum_of_cluster(disk) is None
        assert await minimum_of_cluster(disk, "2") == "2"
        assert MINIMUM not in caplog.text
        assert await minimum_of_cluster(disk, "3") == "2"
        assert "min.insync.replicas=3 of this node's configuration is ignored" in caplog.text
        assert "ottla configs alter --all-brokers --set min.insync.replicas=3" in caplog.text

    asyncio.run(run())
