"""SQS errors: each has a name in the JSON protocol and a code in the query protocol."""

from typing import Final

from ottla.client.wire.errors import BrokerError, WireError
from ottla.gateway.core.errors import CoreError, TooBusy
from ottla.protocol.errors import ErrorCode

# Where the query protocol's code differs from the shape's name.
_QUERY_CODES: Final = {
    "BatchEntryIdsNotDistinct": "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
    "BatchRequestTooLong": "AWS.SimpleQueueService.BatchRequestTooLong",
    "EmptyBatchRequest": "AWS.SimpleQueueService.EmptyBatchRequest",
    "InvalidBatchEntryId": "AWS.SimpleQueueService.InvalidBatchEntryId",
    "InvalidParameterValueException": "InvalidParameterValue",
    "MessageNotInflight": "AWS.SimpleQueueService.MessageNotInflight",
    "MissingParameterException": "MissingParameter",
    "PurgeQueueInProgress": "AWS.SimpleQueueService.PurgeQueueInProgress",
    "QueueDeletedRecently": "AWS.SimpleQueueService.QueueDeletedRecently",
    "QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "TooManyEntriesInBatchRequest": "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
    "UnknownOperationException": "InvalidAction",
    "UnsupportedOperation": "AWS.SimpleQueueService.UnsupportedOperation",
}

_FORBIDDEN: Final = {
    ErrorCode.cluster_authorization_failed,
    ErrorCode.group_authorization_failed,
    ErrorCode.topic_authorization_failed,
    ErrorCode.transactional_id_authorization_failed,
}


class SqsError(Exception):
    """Answered as an error; nothing was done."""

    def __init__(self, name: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.name = name
        self.message = message
        self.status = status

    @property
    def query_code(self) -> str:
        return _QUERY_CODES.get(self.name, self.name)

    @property
    def is_senders_fault(self) -> bool:
        return self.status < 500


def invalid_value(message: str) -> SqsError:
    return SqsError("InvalidParameterValueException", message)


def missing(parameter: str) -> SqsError:
    return SqsError(
        "MissingParameterException", f"The request must contain the parameter {parameter}."
    )


def no_queue() -> SqsError:
    return SqsError("QueueDoesNotExist", "The specified queue does not exist.")


def denied(reason: str) -> SqsError:
    return SqsError("AccessDenied", reason, 403)


def unavailable(reason: str) -> SqsError:
    """SDKs retry the request."""
    return SqsError("ServiceUnavailable", reason, 503)


def error_of(error: Exception) -> SqsError:
    """An error of the core or the brokers as an SQS error; raises any other."""
    match error:
        case SqsError():
            return error
        case TooBusy():
            return SqsError("RequestThrottled", str(error), 503)
        case BrokerError(code=ErrorCode.unknown_topic_or_partition):
            return no_queue()
        case BrokerError() if error.code in _FORBIDDEN:
            return denied(str(error))
        case CoreError():
            return unavailable(str(error))
        case WireError() if error.may_pass:
            return unavailable(str(error))
        case WireError():
            return SqsError("InvalidParameterValueException", str(error))
    raise error
