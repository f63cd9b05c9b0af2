"""What consumers may say about records, checked for its form."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.groups.share.delivery import Acknowledgement, AcknowledgeType
from ottla.protocol.errors import ApiError, ErrorCode


class TypedRange(NamedTuple):
    first_offset: int
    last_offset: int
    kind: AcknowledgeType


def typed_ranges(acknowledgements: Iterable[Acknowledgement]) -> list[TypedRange]:
    """As ranges of one type each, in ascending order. ApiError(invalid_request) if malformed."""
    ranges: list[TypedRange] = []
    next_offset = 0
    for acknowledgement in acknowledgements:
        if acknowledgement.first_offset < next_offset:
            raise _malformed("the offsets do not ascend")
        ranges.extend(_ranges_of(acknowledgement))
        next_offset = acknowledgement.last_offset + 1
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


def _malformed(problem: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, problem)
