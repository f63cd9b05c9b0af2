"""The metadata's users and tokens, for logins."""

from collections.abc import Callable

from ottla.controller.image import MetadataImage
from ottla.security.delegation_tokens import TokenLogin, TokenSecret
from ottla.security.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism, unknown_user

_REMEMBERED_PER_TOKEN = len(ScramMechanism)


class ImageCredentials:
    """Implements `security.exchange.Credentials`.

    An unknown user is challenged with a salt that is the same for every attempt and on every node:
    it comes from a secret that all nodes share, the keys of the first user. `fallback` is the
    secret while there are no users.
    """

    def __init__(
        self,
        image: MetadataImage,
        fallback: bytes,
        secret: TokenSecret | None = None,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`secret` is that of delegation tokens, if there are any."""
        self._image = image
        self._fallback = fallback
        self._secret = secret
        self._now_ms = now_ms

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        tokens, now_ms = self._image.delegation_tokens, self._now_ms()
        token = tokens.get(token_id)
        if token is None or self._secret is None or token.is_expired(now_ms):
            return None
        if self._secret.remembered > _REMEMBERED_PER_TOKEN * len(tokens):
            self._secret.forget_others(tokens)
        credential = self._secret.credential(mechanism, token_id)
        return TokenLogin(token.owner, credential, token.expires_ms - now_ms)

    def scram(self, mechanism: ScramMechanism, username: str) -> ScramCredential:
        users = self._image.scram_credentials
        found = users.get((username, mechanism))
        if found is not None:
            return found
        first = next(iter(users.values()), None)
        if first is None:
            return unknown_user(mechanism, username, self._fallback, ITERATIONS_MIN)
        return unknown_user(mechanism, username, first.server_key, first.iterations)
