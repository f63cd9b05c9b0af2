import pytest
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from tests.controller.cluster import Cluster

from ottla.controller.records import ProducerIdsRecord
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE


def test_blocks_of_a_thousand_follow_each_other():
    cluster = Cluster()
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=0)
    result = cluster.result_of(request)
    first = result.response.producer_id_start
    assert result.records == (
        ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=first + 1000),
    )
    assert result.response == AllocateProducerIdsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        producer_id_start=first,
        producer_id_len=1000,
    )
    cluster.apply(result)
    assert cluster.result_of(request).response.producer_id_start == first + 1000


@pytest.mark.parametrize("given", [0, 7000])
def test_ids_begin_apart_from_those_of_other_clusters(given):
    """Also in a cluster that has given some from 0 on."""
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=0)
    cluster = Cluster()
    if given:
        cluster.machine.replay(
            ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=given), 0
        )
    first = cluster.result_of(request).response.producer_id_start
    assert 2**32 <= first < 2**53
    assert first % 2**32 == 0


def test_a_broker_with_an_old_epoch_gets_none():
    with pytest.raises(ApiError) as caught:
        Cluster().machine.producer_ids.allocate_producer_ids(
            AllocateProducerIdsRequest(broker_id=1, broker_epoch=5)
        )
    assert caught.value.code is ErrorCode.stale_broker_epoch
