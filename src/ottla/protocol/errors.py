"""Errors, by who is at fault.

ApiError       the client is wrong or the cluster is not ready; it becomes an error code
ProtocolError  the peer broke the protocol; its connection is closed
"""

from kio.schema.errors import ErrorCode

__all__ = ["ApiError", "ErrorCode", "ProtocolError"]


class ApiError(Exception):
    """Raised before anything has changed; `handlers` turns it into a response.

    To keep one in a variable, a dict or a future, use `with_traceback(None)`: otherwise the frames
    of the traceback reference it in turn, and each refusal is a cycle for the collector. An
    instance that is raised repeatedly would accumulate the frames of all raisers.
    """

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message or code.name.replace("_", " ")


class ProtocolError(Exception):
    """The bytes on the connection violate the protocol."""
