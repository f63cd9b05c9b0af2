import asyncio

import pytest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i32

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.runtime.producer_ids import ProducerIds


class Blocks:
    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self.asked = 0
        self.error: ApiError | None = None

    async def allocate(self) -> AllocateProducerIdsResponse:
        self.asked += 1
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        first = self.taken * self.size
        self.taken += 1
        return AllocateProducerIdsResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            producer_id_start=ProducerId(first),
            producer_id_len=i32(self.size),
        )


def test_ids_are_unique_and_a_block_is_asked_for_only_when_one_is_used_up() -> None:
    async def run() -> tuple[list[int], int]:
        blocks = Blocks(size=4)
        ids = ProducerIds(blocks.allocate)
        return await asyncio.gather(*(ids.next_id() for _ in range(10))), blocks.taken

    assert asyncio.run(run()) == (list(range(10)), 3)


def test_a_refused_block_is_asked_for_again_by_the_client() -> None:
    async def run() -> int:
        blocks = Blocks(size=4)
        ids = ProducerIds(blocks.allocate)
        blocks.error = ApiError(ErrorCode.stale_broker_epoch)
        with pytest.raises(ApiError) as refusal:
            await ids.next_id()
        assert refusal.value.code is ErrorCode.coordinator_load_in_progress
        blocks.error = None
        return await ids.next_id()

    assert asyncio.run(run()) == 0


def test_whoever_waits_for_a_refused_block_is_refused_with_it() -> None:
    async def run() -> int:
        blocks = Blocks(size=4)
        ids = ProducerIds(blocks.allocate)
        blocks.error = ApiError(ErrorCode.request_timed_out)
        calls = [asyncio.ensure_future(ids.next_id()) for _ in range(10)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        codes = [outcome.code if isinstance(outcome, ApiError) else outcome for outcome in outcomes]
        assert codes == [ErrorCode.coordinator_load_in_progress] * 10
        return blocks.asked

    assert asyncio.run(run()) == 1
