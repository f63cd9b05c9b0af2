import asyncio
from random import Random
from uuid import UUID

from kio.schema.types import BrokerId
from kio.static.primitive import i64
from tests.node.quorum_kit import NetworkPeers, QuorumCluster, until

from ottla.controller.image import MetadataImage
from ottla.controller.records import RegisterBrokerRecord
from ottla.node import voting
from ottla.node.voting import Voting


def broker(broker_id, *, fenced):
    return RegisterBrokerRecord(
        broker_id=BrokerId(broker_id),
        incarnation_id=UUID(int=broker_id),
        broker_epoch=i64(1),
        end_points=(),
        fenced=fenced,
    )


class WatchedImage(MetadataImage):
    looks_count = 0

    def active_brokers(self):
        self.looks_count += 1
        return super().active_brokers()


def test_a_node_votes_as_soon_as_its_image_says_that_it_is_active(monkeypatch):
    monkeypatch.setattr(voting, "_WATCH_S", 3_600)

    async def test():
        cluster = QuorumCluster()
        await cluster.start(1)
        second = await cluster.start(2)
        image = WatchedImage()
        image.replay(broker(1, fenced=False))
        image.replay(broker(2, fenced=True))
        peers = NetworkPeers(cluster.network, 2)
        watching = asyncio.ensure_future(Voting(second.quorum, peers, 3, image, Random(1)).watch())
        await until(lambda: image.looks_count)
        assert not second.core.is_voter
        image.replay(broker(2, fenced=False))
        await until(lambda: second.core.is_voter)
        watching.cancel()
        await cluster.stop()

    asyncio.run(test())
