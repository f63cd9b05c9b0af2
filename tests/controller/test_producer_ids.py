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
    assert result.records == (
        ProducerIdsRecord(broker_id=1, broker_epoch=0, next_producer_id=1000),
    )
    assert result.response == AllocateProducerIdsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        producer_id_start=0,
        producer_id_len=1000,
    )
    cluster.apply(result)
    assert cluster.result_of(request).response.producer_id_start == 1000


def test_a_broker_with_an_old_epoch_gets_none():
    with pytest.raises(ApiError) as caught:
        Cluster().machine.producer_ids.allocate_producer_ids(
            AllocateProducerIdsRequest(broker_id=1, broker_epoch=5)
        )
    assert caught.value.code is ErrorCode.stale_broker_epoch
