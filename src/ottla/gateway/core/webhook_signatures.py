"""Standard Webhooks signatures (standardwebhooks.com): `v1`, HMAC-SHA256.

The signed content is `id.timestamp.body`, so an id contains no full stop. A secret is written as
`whsec_` and its bytes in base64.
"""

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"
SECRET_BYTES = 32
SECRET_BYTES_MIN = 24  # The specification's minimum.
SECRET_BYTES_MAX = 64


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def parse_secret(text: str) -> bytes:
    """The bytes to sign with. Raises ValueError if the text is not a secret."""
    if not text.startswith(PREFIX):
        raise ValueError(f"a webhook secret begins with {PREFIX}")
    try:
        secret = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise ValueError(f"a webhook secret is {PREFIX} and base64") from None
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise ValueError(
            f"a webhook secret has {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes,"
            f" this one {len(secret)}"
        )
    return secret


def sign(secret: bytes, message_id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """The three signature headers of a delivery."""
    content = b"%s.%d.%s" % (message_id.encode(), timestamp_s, body)
    digest = base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": f"v1,{digest}",
    }
