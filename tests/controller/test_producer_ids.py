import pytest
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from kio.schema.types import BrokerId, ProducerId
from kio.static.primitive import i32, i64
from tests.controller.cluster import Cluster, answered

from ottla.controller.records import ProducerIdsRecord
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE


def test_blocks_of_a_thousand_follow_each_other() -> None:
    cluster = Cluster()
    request = AllocateProducerIdsRequest(broker_id=BrokerId(1), broker_epoch=i64(0))
    result = cluster.result_of(request)
    first = answered(result).producer_id_start
    assert result.records == (
        ProducerIdsRecord(
            broker_id=BrokerId(1), broker_epoch=i64(0), next_producer_id=first + 1000
        ),
    )
    assert result.response == AllocateProducerIdsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        producer_id_start=first,
        producer_id_len=i32(1000),
    )
    cluster.apply(result)
    assert answered(cluster.result_of(request)).producer_id_start == first + 1000


@pytest.mark.parametrize("given", [0, 7000])
def test_ids_begin_apart_from_those_of_other_clusters(given: int) -> None:
    """Even in a cluster that has already assigned ids from 0."""
    request = AllocateProducerIdsRequest(broker_id=BrokerId(1), broker_epoch=i64(0))
    cluster = Cluster()
    if given:
        cluster.machine.replay(
            ProducerIdsRecord(
                broker_id=BrokerId(1), broker_epoch=i64(0), next_producer_id=ProducerId(given)
            ),
            0,
        )
    first = answered(cluster.result_of(request)).producer_id_start
    assert 2**32 <= first < 2**53
    assert first % 2**32 == 0


def test_a_broker_with_an_old_epoch_gets_none() -> None:
    with pytest.raises(ApiError) as caught:
        Cluster().machine.producer_ids.allocate_producer_ids(
            AllocateProducerIdsRequest(broker_id=BrokerId(1), broker_epoch=i64(5))
        )
    assert caught.value.code is ErrorCode.stale_broker_epoch
