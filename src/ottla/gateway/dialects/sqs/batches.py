"""Batch requests: up to ten entries, each with its own id and result."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.gateway.dialects.sqs.errors import SqsError

_ENTRIES_MAX: Final = 10
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")

Entry = dict[str, Any]


def validate_entries(entries: Sequence[Entry], kind: str) -> None:
    if not entries:
        raise SqsError(
            "EmptyBatchRequest",
            f"There should be at least one {kind}BatchRequestEntry in the request.",
        )
    if len(entries) > _ENTRIES_MAX:
        raise SqsError(
            "TooManyEntriesInBatchRequest",
            f"Maximum number of entries per request are {_ENTRIES_MAX}. You have sent"
            f" {len(entries)}.",
        )
    seen: set[str] = set()
    for entry in entries:
        entry_id = entry["Id"]
        if not _ID.fullmatch(entry_id):
            raise SqsError(
                "InvalidBatchEntryId",
                "A batch entry id can only contain alphanumeric characters, hyphens and"
                " underscores. It can be at most 80 letters long.",
            )
        if entry_id in seen:
            raise SqsError("BatchEntryIdsNotDistinct", f"Id {entry_id} repeated.")
        seen.add(entry_id)


def batch_result(entries: Sequence[Entry], outcomes: Sequence[Any]) -> dict[str, Any]:
    """Each outcome is the members of a successful entry, or an SqsError."""
    successful: list[Mapping[str, Any]] = []
    failed: list[Mapping[str, Any]] = []
    for entry, outcome in zip(entries, outcomes, strict=True):
        if isinstance(outcome, SqsError):
            failed.append(
                {
                    "Id": entry["Id"],
                    "SenderFault": outcome.is_senders_fault,
                    "Code": outcome.query_code,
                    "Message": outcome.message,
                }
            )
        else:
            successful.append({"Id": entry["Id"], **outcome})
    return {"Successful": successful, "Failed": failed}
