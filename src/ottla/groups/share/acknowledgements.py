"""Validates acknowledgements, for their form and against the current holders of the records."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ottla.groups.share.delivery import Acknowledgement, AcknowledgeType, DeliveryState
from ottla.groups.share.offset_runs import Runs
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.delivery_acknowledge import (
    DELAY_MS_MAX,
    LOCK_MS_MAX,
    POLICY_DELAY,
    Delivery,
    DeliveryAcknowledgeType,
)

DELIVERY_RECORDS_MAX: Final = 10_000  # In one acknowledgement by holder.


class TypedRange(NamedTuple):
    first_offset: int
    last_offset: int
    kind: AcknowledgeType


def typed_ranges(acknowledgements: Iterable[Acknowledgement]) -> list[TypedRange]:
    """Split into sorted ranges of one type each. ApiError(invalid_request) if malformed.

    As in Kafka, one may begin with the last offset of the previous one.
    """
    ranges: list[TypedRange] = []
    last_offset = -1
    for acknowledgement in acknowledgements:
        if acknowledgement.first_offset < last_offset:
            raise _malformed("the offsets do not ascend")
        ranges.extend(_ranges_of(acknowledgement))
        last_offset = acknowledgement.last_offset
    return ranges


def _ranges_of(acknowledgement: Acknowledgement) -> Iterator[TypedRange]:
    first_offset, last_offset, types = acknowledgement
    count = last_offset - first_offset + 1
    if count <= 0:
        raise _malformed(f"offset {last_offset} comes before {first_offset}")
    if len(types) == 1:
        yield TypedRange(first_offset, last_offset, _type(types[0]))
        return
    if len(types) != count:
        raise _malformed(f"{len(types)} acknowledge types for {count} records")
    begin = 0
    for index in range(1, count + 1):
        if index == count or types[index] != types[begin]:
            yield TypedRange(first_offset + begin, first_offset + index - 1, _type(types[begin]))
            begin = index


def _type(number: int) -> AcknowledgeType:
    try:
        return AcknowledgeType(number)
    except ValueError:
        raise _malformed(f"{number} is not an acknowledge type") from None


def validate_acquired(
    runs: Runs,
    member_id: str,
    ranges: Sequence[TypedRange],
    acknowledgements: Sequence[Acknowledgement],
) -> None:
    """Kafka's ApiError unless the member has acquired all of them.

    An acknowledgement that reaches past the end is rejected for that, whatever else is wrong with
    it. A renewed record is still acquired: only a renewal may be repeated for an offset.
    """
    ends = [acknowledgement.last_offset for acknowledgement in acknowledgements]
    done_offset = -1
    for first, last, kind in ranges:
        _validate_delivered(runs, ends[bisect_left(ends, last)])
        for run in runs.overlapping(first, last):
            if run.state is not DeliveryState.ACQUIRED or run.member_id != member_id:
                raise not_acquired(max(run.first_offset, first), member_id)
        if first == done_offset:
            raise not_acquired(first, member_id)
        if kind is not AcknowledgeType.RENEW:
            done_offset = last


def _validate_delivered(runs: Runs, offset: int) -> None:
    if offset < runs.end_offset:
        return
    code = ErrorCode.invalid_request if runs.span else ErrorCode.invalid_record_state
    raise ApiError(code, f"offset {offset} was not delivered; {runs.end_offset} is the next one")


def not_acquired(offset: int, member_id: str) -> ApiError:
    return ApiError(
        ErrorCode.invalid_record_state,
        f"offset {offset} is not acquired by {member_id}; its lock may have timed out",
    )


def _malformed(problem: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, problem)


def validated_type(delivery: Delivery, log_end_offset: int) -> DeliveryAcknowledgeType:
    """ApiError(invalid_request) if the delivery makes no sense.

    A new leader may know less of the log than was reported before: then nothing is skipped yet.
    """
    try:
        kind = DeliveryAcknowledgeType(delivery.type)
    except ValueError:
        raise _malformed(f"{delivery.type} is not a type of acknowledgement") from None
    if kind is DeliveryAcknowledgeType.SKIP:
        if delivery.last_offset >= log_end_offset:
            raise ApiError(ErrorCode.offset_not_available, f"the log ends at {log_end_offset}")
        return kind
    if not 0 <= delivery.last_offset - delivery.first_offset < DELIVERY_RECORDS_MAX:
        raise _malformed(f"offsets {delivery.first_offset} to {delivery.last_offset}")
    if delivery.first_offset < 0 or delivery.delivery_count < 1 or not delivery.holder:
        raise _malformed("a delivery has an offset, a holder and a count from 1 on")
    if kind is DeliveryAcknowledgeType.RENEW and not 0 < delivery.lock_ms <= LOCK_MS_MAX:
        raise _malformed(f"a lock of {delivery.lock_ms} ms; the longest has {LOCK_MS_MAX}")
    if not POLICY_DELAY <= delivery.delay_ms <= DELAY_MS_MAX:
        raise _malformed(f"a delay of {delivery.delay_ms} ms; the longest has {DELAY_MS_MAX}")
    return kind
