"""The common part of Ottla's own APIs; Kafka numbers its APIs from 0."""

from typing import ClassVar

from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.primitive import i16


class OwnRequest:
    __slots__ = ()
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader


class OwnResponse:
    __slots__ = ()
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
