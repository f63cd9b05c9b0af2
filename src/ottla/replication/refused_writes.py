"""Idempotent producers of which a batch was refused for a reason that passes.

A producer sends several batches at a time. Those behind the refused one leave a gap, and they are
refused for the same reason. Were they told of the gap, librdkafka would begin a new epoch on all
partitions, and send again what leaders of others have taken and not yet acknowledged.
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
    """Of one partition."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, _Refused] = {}  # The first of each that is missing.

    def explain(
        self, header: BatchHeader, next_sequence: int, error: ApiError
    ) -> tuple[ErrorCode, str]:
        """What to say of a batch that is refused; `next_sequence` is what should come."""
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
        # Not the error itself, which refers to all that led to it.
        refused = _Refused(header.producer_epoch, header.base_sequence, error.code, error.message)
        self._by_producer[header.producer_id] = refused
