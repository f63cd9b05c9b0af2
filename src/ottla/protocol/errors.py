"""What goes wrong, by whose fault.

ApiError       the client is wrong or the cluster is not ready; it becomes an error code
ProtocolError  the peer broke the protocol; its connection is closed
"""

from kio.schema.errors import ErrorCode

__all__ = ["ApiError", "ErrorCode", "ProtocolError"]


class ApiError(Exception):
    """Raised before anything has changed; `handlers` turns it into a response.

    Whoever keeps one, in a variable, a dict or a future, keeps it `with_traceback(None)`: else the
    frames of the traceback hold it in turn, and each refusal is a cycle for the collector. One that
    is made once and raised often would gather the frames of all who raised it.
    """

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message or code.name.replace("_", " ")


class ProtocolError(Exception):
    """The bytes on the connection are not what the protocol allows."""
