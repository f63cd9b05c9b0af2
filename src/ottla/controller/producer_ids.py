"""Allocates producer ids to brokers in blocks.

They begin at a random number chosen for this cluster, so that no two clusters allocate the same id:
otherwise logs from elsewhere with their producers' ids (restored, or moved here) would have batches
that look like earlier ones of a producer that never wrote them.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i32

from ottla.controller.brokers import validate_broker_epoch
from ottla.controller.image import MetadataImage
from ottla.controller.records import ProducerIdsRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

BLOCK_SIZE: Final = 1000
PRODUCER_ID_MAX: Final = 2**63 - 1


# JavaScript, and so the console, counts to 2^53.
_CLUSTERS: Final = 2**20
_IDS_OF_A_CLUSTER: Final = 2**32


class ProducerIdControl:
    def __init__(self, image: MetadataImage, new_uuid: Callable[[], UUID]) -> None:
        self._image = image
        self._new_uuid = new_uuid

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> Result[AllocateProducerIdsResponse]:
        validate_broker_epoch(self._image, request.broker_id, request.broker_epoch)
        first = self._image.next_producer_id
        if first < _IDS_OF_A_CLUSTER:  # Where other clusters, and all of Apache Kafka's, begin.
            number = 1 + self._new_uuid().int % _CLUSTERS
            first = ProducerId(number * _IDS_OF_A_CLUSTER)
        if first > PRODUCER_ID_MAX - BLOCK_SIZE:
            raise ApiError(ErrorCode.unknown_server_error, "all producer ids are used up")
        record = ProducerIdsRecord(
            broker_id=request.broker_id,
            broker_epoch=request.broker_epoch,
            next_producer_id=ProducerId(first + BLOCK_SIZE),
        )
        response = AllocateProducerIdsResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            producer_id_start=first,
            producer_id_len=i32(BLOCK_SIZE),
        )
        return Result(response, (record,))
