from random import Random
from uuid import UUID

import pytest
from kio.schema.types import BrokerId
from kio.static.primitive import i64
from tests.kits.quorums import OBSERVES, QuorumCluster, run
from tests.kits.world import until

from ottla.controller.image import MetadataImage
from ottla.controller.records import RegisterBrokerRecord
from ottla.node import voting
from ottla.node.voting import Voting


def broker(broker_id: int, *, fenced: bool) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=BrokerId(broker_id),
        incarnation_id=UUID(int=broker_id),
        broker_epoch=i64(1),
        end_points=(),
        fenced=fenced,
    )


class WatchedImage(MetadataImage):
    looks_count = 0

    def active_brokers(self) -> list[RegisterBrokerRecord]:
        self.looks_count += 1
        return super().active_brokers()


def test_a_node_votes_as_soon_as_its_image_says_that_it_is_active(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(voting, "_WATCH_S", 3_600)

    async def test(cluster: QuorumCluster) -> None:
        await cluster.start(1)
        second = await cluster.start(2, **OBSERVES)
        image = WatchedImage()
        image.replay(broker(1, fenced=False))
        image.replay(broker(2, fenced=True))
        peers = second.node._peers
        watching = Voting(second.quorum, peers, 3, image, Random(1)).watch()
        second.process.create_task(watching)
        await until(lambda: image.looks_count > 0)
        assert not second.core.is_voter
        image.replay(broker(2, fenced=False))
        await until(lambda: second.core.is_voter)

    run(test)
