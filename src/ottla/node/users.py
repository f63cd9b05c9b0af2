"""The metadata's users and tokens, for logins."""

from collections.abc import Callable

from ottla.controller.image import MetadataImage
from ottla.protocol.lazy_dataclass import dataclass
from ottla.security.delegation_tokens import TokenLogin, TokenSecret
from ottla.security.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism, unknown_user

_REMEMBERED_PER_TOKEN = len(ScramMechanism)


@dataclass(slots=True, eq=False)
class ImageCredentials:
    """Implements `security.exchange.Credentials`.

    An unknown user is challenged with a salt that is the same for every attempt and on every node:
    it comes from a secret that all nodes share, the keys of the first user. `fallback` is the
    secret while there are no users.
    """

    image: MetadataImage
    fallback: bytes
    secret: TokenSecret | None = None  # Of delegation tokens, if there are any.
    now_ms: Callable[[], int] = lambda: 0

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        tokens, now_ms = self.image.delegation_tokens, self.now_ms()
        token = tokens.get(token_id)
        if token is None or self.secret is None or token.is_expired(now_ms):
            return None
        if self.secret.remembered > _REMEMBERED_PER_TOKEN * len(tokens):
            self.secret.forget_others(tokens)
        credential = self.secret.credential(mechanism, token_id)
        return TokenLogin(token.owner, credential, token.expires_ms - now_ms)

    def scram(self, mechanism: ScramMechanism, username: str) -> ScramCredential:
        users = self.image.scram_credentials
        found = users.get((username, mechanism))
        if found is not None:
            return found
        first = next(iter(users.values()), None)
        if first is None:
            return unknown_user(mechanism, username, self.fallback, ITERATIONS_MIN)
        return unknown_user(mechanism, username, first.server_key, first.iterations)
