"""Checks that run before anything is appended."""

from collections.abc import Sequence

from ottla.controller.config import RECORD_IMPORT
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import BatchHeader, validate_checksum
from ottla.storage.config import LogConfig


def validate_fetched(
    records: memoryview,
    batches: Sequence[tuple[int, BatchHeader]],
    topic_partition: TopicPartition,
    next_offset: int,
) -> None:
    """Check that batches fetched from the leader are intact and continue the log."""
    for position, header in batches:
        validate_checksum(records, position, header)
        if header.base_offset < next_offset:
            raise ApiError(
                ErrorCode.offset_out_of_range,
                f"offset {header.base_offset} of {topic_partition} cannot be appended"
                f" after {next_offset}",
            )
        next_offset = header.next_offset


def invalid_timestamp(header: BatchHeader, config: LogConfig, now_ms: int) -> ApiError:
    return ApiError(
        ErrorCode.invalid_timestamp,
        f"timestamps {header.base_timestamp} to {header.max_timestamp} of the batch are not from"
        f" {config.message_timestamp_before_max_ms} ms before to"
        f" {config.message_timestamp_after_max_ms} ms after the broker's clock, {now_ms}",
    )


def only_imports(topic_partition: TopicPartition) -> ApiError:
    return ApiError(
        ErrorCode.policy_violation,
        f"{topic_partition} takes only imported records until {RECORD_IMPORT.name} of its topic is"
        " closed; `ottla restore` and `ottla migrate --cut-over` close it when they are done",
    )
