"""Delegation tokens (KIP-48): what a cluster's secret makes of a token's id.

The HMAC of a token is its password. It is not kept: whoever has the secret makes it from the id. A
token logs in by SCRAM, with its id as the name and its HMAC in base64 as the password.
"""

import hmac
from dataclasses import dataclass, field

from ottla.security.principal import Principal
from ottla.security.scram import (
    ITERATIONS_MIN,
    SALT_BYTES,
    ScramCredential,
    ScramMechanism,
    encode,
    new_credential,
)


@dataclass(frozen=True, slots=True)
class DelegationToken:
    token_id: str
    owner: Principal  # Who logs in with it.
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    max_ms: int  # Until when it can be renewed at most.
    expires_ms: int

    def is_managed_by(self, principal: Principal) -> bool:
        return principal in (self.owner, self.requester, *self.renewers)

    def is_expired(self, now_ms: int) -> bool:
        return min(self.max_ms, self.expires_ms) < now_ms


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """What a login with a token is checked against."""

    owner: Principal
    credential: ScramCredential = field(repr=False)
    lifetime_ms: int


class TokenSecret:
    """`delegation.token.secret.key`, the same on all nodes."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        # A password is salted at the cost of thousands of hashes, so once for each token.
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}

    def hmac(self, token_id: str) -> bytes:
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def credential(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential:
        """Of a token that is there. Its salt is the same on all nodes."""
        key = (token_id, mechanism)
        found = self._credentials.get(key)
        if found is None:
            salt = hmac.digest(self._secret, b"salt\0" + token_id.encode(), "sha512")[:SALT_BYTES]
            password = encode(self.hmac(token_id))
            found = new_credential(mechanism, password, salt, ITERATIONS_MIN)
            self._credentials[key] = found
        return found

    def forget_others(self, token_ids: "set[str] | dict[str, DelegationToken]") -> None:
        """Of tokens that are gone."""
        self._credentials = {
            key: credential for key, credential in self._credentials.items() if key[0] in token_ids
        }

    @property
    def remembered(self) -> int:
        return len(self._credentials)
