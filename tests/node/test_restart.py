"""A whole node that is stopped and started again: real sockets, a disk in memory."""

import asyncio

from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16
from tests.node.test_faults import client_of, started

from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds
from ottla.storage.faulty_filesystem import FaultyFilesystem


def test_a_node_starts_with_the_features_that_were_chosen() -> None:
    async def run() -> None:
        disk = FaultyFilesystem(seed=1)
        node = await started(disk)
        update = FeatureUpdateKey(
            feature="transaction.version", max_version_level=i16(1), upgrade_type=i8(2)
        )
        async with client_of(node) as client:
            response = await client.call(
                UpdateFeaturesRequest(timeout=milliseconds(1000), feature_updates=(update,))
            )
            assert response.error_code is ErrorCode.none
        await node.stop()
        node = await started(disk)
        await node.stop()

    asyncio.run(run())
