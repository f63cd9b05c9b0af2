"""Broker 1 coordinates; it leads `here`, broker 2 leads `there` and `also`, nobody `lost`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kio.schema.types import ProducerId, TopicName
from kio.schema.write_txn_markers.v2.request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kio.schema.write_txn_markers.v2.response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kio.static.primitive import i8, i16, i32
from tests.replication.manager_kit import ManagerKit

from ottla.controller.records import NO_LEADER
from ottla.coordination.marker_routes import MarkerRoutes
from ottla.machine.transactional import TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.runtime.supervisor import Supervisor

COMMIT = TransactionMarker(producer_id=7, producer_epoch=1, coordinator_epoch=3, committed=True)
ABORT = TransactionMarker(producer_id=8, producer_epoch=0, coordinator_epoch=3, committed=False)
VERSION = i8(2)


# The broker, the request and its response.
Asked = tuple[int, WriteTxnMarkersRequest, asyncio.Future[WriteTxnMarkersResponse]]


class Kit(ManagerKit):
    def __init__(self) -> None:
        super().__init__()
        self.create("here")
        self.create("there", leader=2)
        self.create("also", leader=2)
        self.create("lost", leader=NO_LEADER)
        self.written: list[tuple[TopicPartition, TransactionMarker, int]] = []
        self.requests: asyncio.Queue[Asked] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self.supervisor = Supervisor(loop, print)
        self.routes = MarkerRoutes(1, self.image, self._write_here, self._ask, self.supervisor)

    async def _write_here(
        self, topic_partition: TopicPartition, marker: TransactionMarker, transaction_version: int
    ) -> None:
        self.written.append((topic_partition, marker, transaction_version))

    async def _ask(
        self, broker_id: int, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse:
        answer: asyncio.Future[WriteTxnMarkersResponse] = asyncio.Future()
        self.requests.put_nowait((broker_id, request, answer))
        return await answer

    def write(self, topic: str, marker: TransactionMarker = COMMIT) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.routes.write(TopicPartition(topic, 0), marker, VERSION))


def sent(marker: TransactionMarker, *topics: str) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=ProducerId(marker.producer_id),
        producer_epoch=i16(marker.producer_epoch),
        transaction_result=marker.committed,
        topics=tuple(
            WritableTxnMarkerTopic(name=TopicName(topic), partition_indexes=(i32(0),))
            for topic in topics
        ),
        coordinator_epoch=i32(3),
        transaction_version=VERSION,
    )


def result(marker: TransactionMarker, **codes: Any) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=ProducerId(marker.producer_id),
        topics=tuple(
            WritableTxnMarkerTopicResult(
                name=TopicName(topic),
                partitions=(
                    WritableTxnMarkerPartitionResult(partition_index=i32(0), error_code=code),
                ),
            )
            for topic, code in codes.items()
        ),
    )


def run(test: Callable[[Kit], Awaitable[None]]) -> None:
    async def whole() -> None:
        kit = Kit()
        await test(kit)
        await kit.supervisor.stop()

    asyncio.run(whole())


def test_markers_for_what_is_led_here_are_written_here() -> None:
    async def test(kit: Kit) -> None:
        await kit.write("here")
        assert kit.written == [(TopicPartition("here", 0), COMMIT, VERSION)]
        assert kit.requests.empty()

    run(test)


def test_markers_for_one_broker_go_in_one_request() -> None:
    async def test(kit: Kit) -> None:
        writes = [kit.write("there"), kit.write("also"), kit.write("there", ABORT)]
        broker_id, request, answer = await kit.requests.get()
        assert broker_id == 2
        assert request == WriteTxnMarkersRequest(
            markers=(sent(COMMIT, "there", "also"), sent(ABORT, "there"))
        )
        later = kit.write("also", ABORT)
        answer.set_result(
            WriteTxnMarkersResponse(
                markers=(
                    result(COMMIT, there=ErrorCode.none, also=ErrorCode.not_enough_replicas),
                    result(ABORT, there=ErrorCode.none),
                )
            )
        )
        await writes[0]
        await writes[2]
        with pytest.raises(ApiError) as refused:
            await writes[1]
        assert refused.value.code is ErrorCode.not_enough_replicas
        _, request, answer = await kit.requests.get()
        assert request == WriteTxnMarkersRequest(markers=(sent(ABORT, "also"),))
        answer.set_result(WriteTxnMarkersResponse(markers=(result(ABORT, also=ErrorCode.none),)))
        await later

    run(test)


@pytest.mark.parametrize("answered", [(), (result(COMMIT),)])
def test_what_is_not_answered_may_not_be_written(
    answered: tuple[WritableTxnMarkerResult, ...],
) -> None:
    async def test(kit: Kit) -> None:
        write = kit.write("there")
        _, _, answer = await kit.requests.get()
        answer.set_result(WriteTxnMarkersResponse(markers=answered))
        with pytest.raises(ApiError):
            await write

    run(test)


def test_a_broker_that_does_not_answer_is_asked_anew_by_whoever_tries_again() -> None:
    async def test(kit: Kit) -> None:
        write = kit.write("there")
        _, _, answer = await kit.requests.get()
        answer.set_exception(ApiError(ErrorCode.coordinator_not_available))
        with pytest.raises(ApiError):
            await write
        kit.change("there", leader=3)
        again = kit.write("there")
        broker_id, _, answer = await kit.requests.get()
        assert broker_id == 3
        answer.set_result(WriteTxnMarkersResponse(markers=(result(COMMIT, there=ErrorCode.none),)))
        await again

    run(test)


def test_a_partition_without_a_leader_waits() -> None:
    async def test(kit: Kit) -> None:
        with pytest.raises(ApiError) as refused:
            await kit.write("lost")
        assert refused.value.code is ErrorCode.leader_not_available

    run(test)
