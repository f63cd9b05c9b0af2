"""Replies that are refusals."""

import asyncio
from typing import Any

from ottla.protocol.errors import ApiError, ErrorCode


def refusal_of(reply: asyncio.Future[Any]) -> ErrorCode:
    refusal = reply.exception()
    assert isinstance(refusal, ApiError)
    return refusal.code
