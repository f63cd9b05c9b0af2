"""Idempotent producers with a batch that was refused for a temporary reason.

A producer sends several batches at a time. Those after the refused one leave a gap, and are refused
for the same reason. If librdkafka were told of the gap, it would begin a new epoch on all
partitions, and resend what other leaders have accepted but not yet acknowledged.
"""

from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import BatchHeader

PRODUCERS_MAX: Final = 1_000

_PASSING: Final = frozenset({ErrorCode.kafka_storage_error, ErrorCode.not_enough_replicas})


class _Refused(NamedTuple):
    producer_epoch: int
    sequence: int
    code: ErrorCode
    message: str


class RefusedWrites:
    """Those of one partition."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, _Refused] = {}  # The first missing batch of each producer.

    def explain(
        self, header: BatchHeader, next_sequence: int, error: ApiError
    ) -> tuple[ErrorCode, str]:
        """The error for a refused batch; `next_sequence` is the expected sequence."""
        if error.code in _PASSING and header.base_sequence == next_sequence:
            self._remember(header, error)
        elif error.code is ErrorCode.out_of_order_sequence_number:
            refused = self._by_producer.get(header.producer_id)
            if refused is not None and refused[:2] == (header.producer_epoch, next_sequence):
                return refused.code, refused.message
        return error.code, error.message

    def _remember(self, header: BatchHeader, error: ApiError) -> None:
        if len(self._by_producer) >= PRODUCERS_MAX:
            self._by_producer.clear()
        # Not the error itself, which references everything that led to it.
        refused = _Refused(header.producer_epoch, header.base_sequence, error.code, error.message)
        self._by_producer[header.producer_id] = refused
