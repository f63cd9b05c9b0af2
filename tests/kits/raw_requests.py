"""Requests and responses as bytes, using only kio, independent of Ottla's codec."""

import io
import struct
from typing import Any

import kio.index
from kio.serial import entity_reader, entity_writer


def request_frame(request: Any, correlation_id: int, client_id: str) -> bytes:
    """The frame of a kio entity, with its size."""
    body = io.BytesIO()
    header_type = request.__header_schema__
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    entity_writer(header_type)(body, header)
    entity_writer(type(request))(body, request)
    return with_size(body.getvalue())


def read_response(request: Any, frame: bytes) -> Any:
    """The response of the same version; `frame` is without its size."""
    response_type = kio.index.load_response_schema(request.__api_key__, request.__version__)
    _, position = entity_reader(response_type.__header_schema__)(frame, 0)
    return entity_reader(response_type)(frame, position)[0]


def with_size(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body
