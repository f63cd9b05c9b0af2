"""AWS signatures, version 4: authenticate an SQS client without sending its password.

The client signs with its secret access key, which here is the password of a broker user; the access
key id is the user's name. A gateway can verify that only if it knows the password, which the
brokers do not store. The gateway reads the passwords of users allowed to sign from its own file.
"""

import datetime as dt
import hmac
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

SCHEME: Final = b"aws4-hmac-sha256"
CLOCK_S_MAX: Final = 900.0  # As in AWS.

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=(?P<key>[^,\s]+)/(?P<date>\d{8})/(?P<region>[^/,\s]+)"
    r"/(?P<service>[^/,\s]+)/aws4_request\s*,\s*SignedHeaders=(?P<headers>[a-z0-9;-]+)\s*,"
    r"\s*Signature=(?P<signature>[0-9a-f]{64})\s*",
    re.IGNORECASE,
)
_TIME: Final = "%Y%m%dT%H%M%SZ"


class InvalidSignature(ValueError):
    """`code` is AWS's error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class SignedRequest(NamedTuple):
    method: str
    path: str  # As sent.
    query: str
    headers: Mapping[bytes, bytes]  # By lower-case name.
    body: bytes


def read_users(path: Path) -> dict[str, str]:
    """Passwords by user name, from lines of `name:password`. Raises ValueError."""
    users: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        if not (name and colon and password):
            raise ValueError(f"line {number} is not name:password")
        users[name] = password
    return users


def is_signed(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"authorization", b"").lower().startswith(SCHEME)


def signer_of(request: SignedRequest, users: Mapping[str, str], now: dt.datetime) -> str:
    """The name of the user who signed the request. Raises InvalidSignature."""
    matched = _AUTHORIZATION.fullmatch(_header(request, "authorization"))
    if matched is None:
        raise InvalidSignature("IncompleteSignature", "The Authorization header is not complete.")
    signing_time = _header(request, "x-amz-date")
    _validate_time(signing_time, matched["date"], now)
    password = users.get(matched["key"])
    if password is None:
        raise InvalidSignature(
            "InvalidClientTokenId", "The access key id is not a user who may sign requests here."
        )
    scope = f"{matched['date']}/{matched['region']}/{matched['service']}/aws4_request"
    canonical = sha256(_canonical(request, matched["headers"].lower()).encode()).hexdigest()
    text = f"{_ALGORITHM}\n{signing_time}\n{scope}\n{canonical}"
    key = b"AWS4" + password.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    expected = hmac.new(key, text.encode(), "sha256").hexdigest()
    if not hmac.compare_digest(expected, matched["signature"].lower()):
        raise InvalidSignature("SignatureDoesNotMatch", "The secret access key does not match.")
    return matched["key"]


def _validate_time(signing_time: str, date: str, now: dt.datetime) -> None:
    try:
        signed_at = dt.datetime.strptime(signing_time, _TIME).replace(tzinfo=dt.UTC)
    except ValueError:
        raise InvalidSignature("IncompleteSignature", "X-Amz-Date is missing.") from None
    if not signing_time.startswith(date) or abs((now - signed_at).total_seconds()) > CLOCK_S_MAX:
        raise InvalidSignature(
            "SignatureDoesNotMatch", "The signature is too old, or dated in the future."
        )


def _canonical(request: SignedRequest, signed_headers: str) -> str:
    names = signed_headers.split(";")
    if "host" not in names:
        raise InvalidSignature("IncompleteSignature", "The host has to be signed.")
    return "\n".join(
        (
            request.method,
            request.path or "/",
            "&".join(sorted(filter(None, request.query.split("&")))),
            *(f"{name}:{' '.join(_header(request, name).split())}" for name in names),
            "",
            signed_headers,
            sha256(request.body).hexdigest(),
        )
    )


def _header(request: SignedRequest, name: str) -> str:
    return request.headers.get(name.encode(), b"").decode("latin-1")
