"""Queue attributes: their names, defaults, and valid values.

Values are text, as on the wire. Counts, times and the ARN are computed on request.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ottla.gateway.dialects.sqs.arns import queue_of_arn
from ottla.gateway.dialects.sqs.errors import SqsError

FIFO_SUFFIX: Final = ".fifo"
MESSAGE_BYTES_MAX: Final = 1_048_576
RECEIVE_COUNT_MAX: Final = 1_000

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")

Problem = str | None


def is_fifo(queue: str) -> bool:
    return queue.endswith(FIFO_SUFFIX)


def validate_queue_name(queue: str) -> None:
    if not _NAME.fullmatch(queue):
        raise SqsError(
            "InvalidParameterValueException",
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
        )


def _between(least: int, most: int) -> Callable[[str], Problem]:
    def problem(text: str) -> Problem:
        valid = text.isascii() and text.isdigit() and least <= int(text) <= most
        return None if valid else f"must be an integer from {least} to {most}"

    return problem


def _one_of(*words: str) -> Callable[[str], Problem]:
    return lambda text: None if text in words else f"must be one of {', '.join(words)}"


def _json_object(text: str) -> Problem:
    return None if not text or isinstance(_loaded(text), dict) else "must be a JSON object"


def _redrive_problem(text: str) -> Problem:
    if not text:
        return None
    try:
        redrive_policy(text)
    except ValueError as error:
        return str(error)
    return None


def _anything(_text: str) -> Problem:
    return None


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


class Attribute(NamedTuple):
    default: str | None  # None: absent until set.
    problem: Callable[[str], Problem]
    fifo_only: bool = False


SETTABLE: Final[Mapping[str, Attribute]] = {
    "DelaySeconds": Attribute("0", _between(0, 900)),
    "MaximumMessageSize": Attribute(str(MESSAGE_BYTES_MAX), _between(1_024, MESSAGE_BYTES_MAX)),
    "MessageRetentionPeriod": Attribute("345600", _between(60, 1_209_600)),
    "Policy": Attribute(None, _json_object),
    "ReceiveMessageWaitTimeSeconds": Attribute("0", _between(0, 20)),
    "RedrivePolicy": Attribute(None, _redrive_problem),
    "RedriveAllowPolicy": Attribute(None, _json_object),
    "VisibilityTimeout": Attribute("30", _between(0, 43_200)),
    "KmsMasterKeyId": Attribute(None, _anything),
    "KmsDataKeyReusePeriodSeconds": Attribute(None, _between(60, 86_400)),
    "SqsManagedSseEnabled": Attribute("false", _one_of("true", "false")),
    "FifoQueue": Attribute(None, _one_of("true"), fifo_only=True),
    "ContentBasedDeduplication": Attribute(None, _one_of("true", "false"), fifo_only=True),
    "DeduplicationScope": Attribute(None, _one_of("messageGroup", "queue"), fifo_only=True),
    "FifoThroughputLimit": Attribute(
        None, _one_of("perQueue", "perMessageGroupId"), fifo_only=True
    ),
}
_FIFO_DEFAULTS: Final = {
    "FifoQueue": "true",
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}
COUNTS: Final = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
MADE: Final = (*COUNTS, "CreatedTimestamp", "LastModifiedTimestamp", "QueueArn")
NAMES: Final = frozenset({*SETTABLE, *MADE})


def validate_attributes(queue: str, given: Mapping[str, str], *, at_creation: bool) -> None:
    for name, value in given.items():
        attribute = SETTABLE.get(name)
        if attribute is None or (attribute.fifo_only and not is_fifo(queue)):
            raise SqsError("InvalidAttributeName", f"Unknown Attribute {name}.")
        problem = attribute.problem(value)
        if problem is None and name == "FifoQueue" and not at_creation:
            problem = "cannot be changed"
        if problem is not None:
            raise SqsError(
                "InvalidAttributeValue",
                f"Invalid value for the parameter {name}. Reason: {problem}.",
            )
    if at_creation and is_fifo(queue) and given.get("FifoQueue") != "true":
        raise SqsError(
            "InvalidParameterValueException",
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or"
            " underscores, must end with .fifo suffix and be 1 to 80 in length. Its attribute"
            " FifoQueue must be true.",
        )


def validate_names(wanted: list[str]) -> None:
    for name in wanted:
        if name != "All" and name not in NAMES:
            raise SqsError("InvalidAttributeName", f"Unknown Attribute {name}.")


def with_defaults(queue: str, given: Mapping[str, str]) -> dict[str, str]:
    """The queue's effective attributes; those neither set nor with a default are absent.

    An empty value removes an attribute without a default, such as RedrivePolicy.
    """
    found = {
        name: attribute.default
        for name, attribute in SETTABLE.items()
        if attribute.default is not None
    }
    if is_fifo(queue):
        found.update(_FIFO_DEFAULTS)
    found.update(given)
    return {name: value for name, value in found.items() if value != ""}


def different_attribute(
    queue: str, kept: Mapping[str, str], asked: Mapping[str, str]
) -> str | None:
    """The first attribute whose value in an existing queue differs from the requested one."""
    now = with_defaults(queue, kept)
    for name, value in asked.items():
        if not _is_same(now.get(name, ""), value):
            return name
    return None


def _is_same(left: str, right: str) -> bool:
    if left == right:
        return True
    parsed = _loaded(left)
    return isinstance(parsed, dict) and parsed == _loaded(right)


class RedrivePolicy(NamedTuple):
    dead_letter_queue: str
    receive_count_max: int


def redrive_policy(text: str) -> RedrivePolicy:
    """Raises ValueError with the reason."""
    policy = _loaded(text)
    if not isinstance(policy, dict):
        raise ValueError("Redrive policy is not a valid JSON map")
    arn = policy.get("deadLetterTargetArn")
    if not isinstance(arn, str):
        raise ValueError("Redrive policy does not contain mandatory attribute: deadLetterTargetArn")
    if "maxReceiveCount" not in policy:
        raise ValueError("Redrive policy does not contain mandatory attribute: maxReceiveCount")
    count = str(policy["maxReceiveCount"])
    if not (count.isascii() and count.isdigit() and 1 <= int(count) <= RECEIVE_COUNT_MAX):
        raise ValueError(
            f"Invalid value for maxReceiveCount: {count}, valid values are from 1 to"
            f" {RECEIVE_COUNT_MAX} both inclusive"
        )
    return RedrivePolicy(queue_of_arn(arn), int(count))
