"""The keys that tokens are signed with (JWKS), from a file or a URL, and the check of a token.

Keys are fetched in a thread and cached: only logins right after the start wait for the first
attempt. They are fetched again periodically, and soon after a token names an unknown key, with
back-off and a limit. A failure is reported once, and the previous keys stay.

PyJWT checks signatures (ADR 28). Only signatures by key pairs count: no `none`, and no shared
secrets, which a public key could be mistaken for.
"""

import asyncio
import json
import logging
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

from ottla.protocol.lazy_dataclass import dataclass
from ottla.security.errors import AuthenticationFailed
from ottla.security.oauthbearer import VerifiedToken

logger = logging.getLogger(__name__)

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
JWKS_BYTES_MAX: Final = 1_048_576
KEYS_MAX: Final = 1_000
FETCH_TIMEOUT_S: Final = 10.0
_SCHEMES: Final = ("file", "http", "https")


@dataclass(frozen=True, slots=True)
class TokenConfig:
    jwks_url: str = ""
    issuer: str = ""
    audience: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()  # A token must have all of them.
    clock_skew_s: int = 30
    scope_claim: str = "scope"
    name_claim: str = "sub"
    refresh_ms: int = 3_600_000
    backoff_ms: int = 100
    backoff_ms_max: int = 10_000
    unsecured: bool = False  # Tokens without a signature are accepted.

    def problem(self) -> str | None:
        if find_spec("jwt") is None:
            return "PyJWT is not installed; run pip install 'ottla[secure]'"
        if self.unsecured:
            return None
        if not self.jwks_url:
            return (
                "sasl.oauthbearer.jwks.endpoint.url is not set; say where the keys are, or "
                "sasl.oauthbearer.unsecured.allowed=true to believe every token"
            )
        if urlsplit(self.jwks_url).scheme not in _SCHEMES:
            return f"{self.jwks_url!r} is neither a file: nor an http: or https: URL"
        return None


class KeysUnavailable(Exception):
    """The keys cannot be fetched, or are invalid."""


class TokenKeys:
    """Keys by id. `load` and `verify` run in threads, `watch` on the event loop."""

    def __init__(self, config: TokenConfig) -> None:
        self._config = config
        self._keys: dict[str | None, Any] = {}
        self._lock = threading.Lock()
        self._was_tried = threading.Event()  # Fetching the keys was tried, with whatever outcome.
        self._is_wanted = asyncio.Event()  # A token names an unknown key.
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def are_fetched(self) -> bool:
        return not self._config.unsecured

    def load(self) -> None:
        """KeysUnavailable if there are no keys."""
        try:
            keys = _parsed(_fetched(self._config.jwks_url))
            with self._lock:
                self._keys = keys
        finally:
            self._was_tried.set()

    async def watch(self, executor: Executor) -> None:
        """Fetches the keys, and again periodically, for as long as it runs."""
        self._loop = loop = asyncio.get_running_loop()
        config, failures = self._config, 0
        while True:
            try:
                await loop.run_in_executor(executor, self.load)
            except KeysUnavailable as error:
                if not failures:
                    logger.error("cannot fetch the keys for tokens, retrying: %s", error)
                failures += 1
                wait_ms = min(config.backoff_ms * 2 ** min(failures, 20), config.backoff_ms_max)
                await asyncio.sleep(wait_ms / 1000 * random.uniform(0.8, 1.2))
                continue
            if failures:
                logger.info("fetched the keys for tokens after %d attempts", failures + 1)
            failures = 0
            self._is_wanted.clear()
            await asyncio.sleep(config.backoff_ms_max / 1000)
            try:
                await asyncio.wait_for(self._is_wanted.wait(), config.refresh_ms / 1000)
            except TimeoutError:
                pass

    def verify(self, token: str) -> VerifiedToken:
        """AuthenticationFailed unless the token is valid."""
        import jwt

        config = self._config
        options: Any = {
            **_CHECKED,
            "require": ["exp", config.name_claim],
            "verify_aud": bool(config.audience),
            "verify_signature": not config.unsecured,
        }
        try:
            claims = jwt.decode(
                token,
                "" if config.unsecured else self._key(jwt.get_unverified_header(token)),
                algorithms=list(ALGORITHMS),
                audience=list(config.audience) or None,
                issuer=config.issuer or None,
                leeway=config.clock_skew_s,
                options=options,
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise AuthenticationFailed(f"an invalid token: {error}") from None
        self._validate_scopes(claims)
        name = claims[config.name_claim]
        if not isinstance(name, str) or not name.strip():
            raise AuthenticationFailed(f"a token whose {config.name_claim} is not a name")
        expires_s = float(claims["exp"]) + config.clock_skew_s - time.time()
        return VerifiedToken(name, max(int(expires_s * 1000), 1))

    def _key(self, header: dict[str, Any]) -> Any:
        self._was_tried.wait(FETCH_TIMEOUT_S)
        with self._lock:
            keys = self._keys
            key = keys.get(header.get("kid"))
        if key is None and len(keys) == 1 and "kid" not in header:
            return next(iter(keys.values()))
        if key is None:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._is_wanted.set)
            raise AuthenticationFailed("a token signed with a key that is not known")
        return key

    def _validate_scopes(self, claims: dict[str, Any]) -> None:
        given = claims.get(self._config.scope_claim, ())
        scopes = given.split() if isinstance(given, str) else list(given or ())
        missing = [scope for scope in self._config.scopes if scope not in scopes]
        if missing:
            raise AuthenticationFailed(f"a token without the scope {missing[0]!r}")


# Applies also if there is no signature to check.
_CHECKED: Final = {"verify_exp": True, "verify_nbf": True, "verify_iat": True, "verify_iss": True}


def _fetched(url: str) -> bytes:
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=FETCH_TIMEOUT_S) as response:
            data: bytes = response.read(JWKS_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise KeysUnavailable(f"{url}: {error}") from None
    if len(data) > JWKS_BYTES_MAX:
        raise KeysUnavailable(f"{url} has more than {JWKS_BYTES_MAX} bytes")
    return data


def _parsed(data: bytes) -> dict[str | None, Any]:
    """Skips keys of unknown types."""
    import jwt

    try:
        entries: Sequence[Any] = json.loads(data)["keys"][:KEYS_MAX]
    except (ValueError, KeyError, TypeError) as error:
        raise KeysUnavailable(f"it is not a JWKS: {error!r}") from None
    keys: dict[str | None, Any] = {}
    for entry in entries:
        try:
            key = jwt.PyJWK.from_dict(entry)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
            continue
        if key.key_type != "oct":
            keys[key.key_id] = key
    if not keys:
        raise KeysUnavailable("it has no key that can verify signatures")
    return keys
