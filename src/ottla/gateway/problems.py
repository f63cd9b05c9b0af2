"""Errors as problem details (RFC 9457): what went wrong, Kafka's error name, and what to do.

Routes raise a `Problem` of their own, or whatever the core raised. `problem_of` is the only place
that turns an exception into an answer.
"""

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from ottla.client.wire.errors import BrokerError, NotAuthenticated, WireError
from ottla.gateway.core.errors import CoreError, Invalid, KeyReused, NotDelayed, TooBusy
from ottla.protocol.errors import ErrorCode

logger = logging.getLogger("ottla.gateway")

MEDIA_TYPE: Final = "application/problem+json"
_RETRY_AFTER_S: Final = 1


class Problem(Exception):
    """An error answer."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        error: str | None = None,
        hint: str | None = None,
        retry_after_s: int | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """`error` is Kafka's name, `hint` what to do; `more` are further members."""
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.error = error
        self.hint = hint
        self.headers = dict(headers or {})
        if retry_after_s is not None:
            self.headers["Retry-After"] = str(retry_after_s)
        self.more = more or {}

    def body(self) -> dict[str, Any]:
        members = {
            "type": f"urn:kafka:error:{self.error}" if self.error else "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "error": self.error,
            "hint": self.hint,
            **self.more,
        }
        return {name: value for name, value in members.items() if value is not None}

    def response(self) -> Response:
        return Response(
            json.dumps(self.body()), self.status, headers=self.headers, media_type=MEDIA_TYPE
        )


def problem_of(error: Exception) -> Problem:
    """For any exception of a route; an unforeseen one is logged and becomes a 500."""
    problem = _foreseen(error)
    if problem is None:
        logger.error("a request failed", exc_info=error)
        problem = Problem(500, "The gateway failed; its log has the reason.")
    return problem


def status_of(error: Exception) -> int:
    """The status of its problem."""
    problem = _foreseen(error)
    return 500 if problem is None else problem.status


def _foreseen(error: Exception) -> Problem | None:
    match error:
        case Problem():
            return error
        case CoreError():
            return _of_core(error)
        case WireError():
            return _of_wire(error)
        case HTTPException():
            return Problem(error.status_code, error.detail, headers=error.headers)
    return None


def _of_core(error: CoreError) -> Problem:
    if isinstance(error, TooBusy):
        return Problem(429, str(error), hint="Send it again later.", retry_after_s=_RETRY_AFTER_S)
    if isinstance(error, KeyReused):
        return Problem(422, str(error), hint="Use a new key for a new request.")
    if isinstance(error, NotDelayed):
        return Problem(409, str(error), hint="Set delivery.delay.enable=true on the topic.")
    assert isinstance(error, Invalid)
    return Problem(400, str(error))


def _of_wire(error: WireError) -> Problem:
    if isinstance(error, BrokerError):
        return _of_code(error.code, str(error))
    if isinstance(error, NotAuthenticated):
        return Problem(502, str(error), hint="Correct the gateway's credentials.")
    return Problem(
        503,
        str(error),
        hint="No broker answers. An Idempotency-Key makes a write safe to repeat.",
        retry_after_s=_RETRY_AFTER_S,
    )


def _of_code(code: ErrorCode, detail: str) -> Problem:
    name = code.name.upper()
    status, hint = _STATUS.get(code, (None, None))
    if status is None:
        status = 503 if code.retriable else 400
    return Problem(
        status,
        detail,
        error=name,
        hint=hint,
        retry_after_s=_RETRY_AFTER_S if status == HTTPStatus.SERVICE_UNAVAILABLE else None,
    )


_STATUS: Final[Mapping[ErrorCode, tuple[int, str | None]]] = {
    ErrorCode.unknown_topic_or_partition: (404, "`GET /topics` lists the topics."),
    ErrorCode.unknown_topic_id: (404, "The topic was deleted."),
    ErrorCode.group_id_not_found: (404, None),
    ErrorCode.transactional_id_not_found: (404, None),
    ErrorCode.topic_already_exists: (409, None),
    ErrorCode.non_empty_group: (409, "Stop its members first."),
    ErrorCode.group_subscribed_to_topic: (409, "Stop its members first."),
    ErrorCode.producer_fenced: (409, "The same request is being answered elsewhere."),
    ErrorCode.invalid_producer_epoch: (409, "The same request is being answered elsewhere."),
    ErrorCode.topic_authorization_failed: (403, None),
    ErrorCode.group_authorization_failed: (403, None),
    ErrorCode.cluster_authorization_failed: (403, None),
    ErrorCode.transactional_id_authorization_failed: (403, None),
    ErrorCode.offset_out_of_range: (
        416,
        "Begin where the partition begins (offset=earliest), or where it ends (offset=latest).",
    ),
    ErrorCode.message_too_large: (413, "Raise max.message.bytes of the topic."),
    ErrorCode.record_list_too_large: (413, None),
    ErrorCode.policy_violation: (403, None),
    ErrorCode.throttling_quota_exceeded: (429, "Send it again later."),
    ErrorCode.unsupported_version: (501, "The brokers cannot do this."),
    ErrorCode.unknown_server_error: (502, "The log of the broker has the reason."),
    ErrorCode.corrupt_message: (502, None),
    ErrorCode.kafka_storage_error: (503, None),
}
