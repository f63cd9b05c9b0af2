"""The listener security of a node, kept up to date: certificates, and the metadata's users."""

import asyncio
import logging
import secrets
import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Final

from ottla.controller.image import MetadataImage
from ottla.controller.token_config import DELEGATION_TOKEN_SECRET_KEY
from ottla.network.listener_security import ListenerSecurity
from ottla.network.peer_login import PeerLogin
from ottla.network.security_config import SecurityConfig, SecurityProtocol, tls_config
from ottla.network.tls import TlsContexts, TlsError
from ottla.network.token_keys import TokenKeys
from ottla.node.config import INITIAL_USERS_FILE
from ottla.node.users import ImageCredentials
from ottla.node.users_file import Users, read_users
from ottla.protocol.config import ConfigValues
from ottla.runtime.clock import Clock
from ottla.security.audit import Audit
from ottla.security.delegation_tokens import TokenSecret
from ottla.security.exchange import Credentials
from ottla.security.oauthbearer import VerifyToken

logger = logging.getLogger(__name__)

RELOAD_INTERVAL_S: Final = 5.0


class Locks:
    def __init__(
        self,
        values: ConfigValues,
        config: SecurityConfig,
        image: MetadataImage,
        audit: Audit | None,
        clock: Clock,
    ) -> None:
        self._config = config
        self._users_file = values[INITIAL_USERS_FILE]
        self.initial_users: Users = {}
        self._contexts = {
            name: TlsContexts(listener.tls)
            for name, listener in config.listeners.items()
            if listener.tls is not None
        }
        secret = values[DELEGATION_TOKEN_SECRET_KEY]
        self._credentials = ImageCredentials(
            image,
            secrets.token_bytes(32),
            TokenSecret(secret) if secret else None,
            clock.now_ms,
        )
        self._first_credentials: ImageCredentials | None = None
        self._is_open = False
        self._token_keys = {
            name: TokenKeys(listener.tokens)
            for name, listener in config.listeners.items()
            if listener.tokens is not None
        }
        self.listeners: Mapping[str, ListenerSecurity] = {
            name: ListenerSecurity(
                listener,
                config,
                self._contexts.get(name),
                partial(self._credentials_of, name),
                self._verify(name),
                audit,
            )
            for name, listener in config.listeners.items()
            if listener.protocol is not SecurityProtocol.PLAINTEXT
        }

    def _verify(self, listener: str) -> VerifyToken | None:
        keys = self._token_keys.get(listener)
        return None if keys is None else keys.verify

    @property
    def token_keys(self) -> list[TokenKeys]:
        """The keys that must be watched."""
        return [keys for keys in self._token_keys.values() if keys.are_fetched]

    @property
    def inter_broker_listener(self) -> str:
        return self._config.inter_broker_listener

    @property
    def protocols(self) -> dict[str, int]:
        """By listener, as registered by a broker."""
        return {name: int(listener.protocol) for name, listener in self._config.listeners.items()}

    @property
    def peer_tls(self) -> Callable[[], ssl.SSLContext] | None:
        """The context for connections to other nodes."""
        contexts = self._contexts.get(self.inter_broker_listener)
        return None if contexts is None else lambda: contexts.client

    def certificates_end(self) -> dict[str, float]:
        """In seconds since 1970, by listener, as far as known. Call in a thread."""
        ends = {name: contexts.expires_s() for name, contexts in self._contexts.items()}
        return {name: end for name, end in ends.items() if end is not None}

    @property
    def peer_login(self) -> PeerLogin | None:
        """This node's login at other nodes, if it must log in."""
        return self._config.node_login

    @property
    def has_files(self) -> bool:
        return bool(self._contexts or self._users_file)

    def open(self) -> None:
        """The image, and with it the users, is loaded."""
        self._is_open = True

    def _credentials_of(self, listener: str) -> Credentials | None:
        """Before the image is loaded, nodes log in with the users from the file: without them there
        is no quorum, and without a quorum no image."""
        if self._is_open:
            return self._credentials
        return self._first_credentials if listener == self.inter_broker_listener else None

    def load(self) -> None:
        """Call in a thread. Raises TlsError and UsersFileError."""
        if self._users_file:
            self.initial_users = read_users(self._users_file)
            first = MetadataImage(scram_credentials=dict(self.initial_users))
            self._first_credentials = ImageCredentials(first, secrets.token_bytes(32))
        for contexts in self._contexts.values():
            contexts.load()

    def configure(self, values: ConfigValues) -> None:
        """Use new keys and certificates; `watch_files` loads them."""
        for name, contexts in self._contexts.items():
            try:
                contexts.configure(tls_config(values, name))
            except ValueError as error:
                _report_unusable(name, error)

    async def watch_files(self, executor: Executor) -> None:
        """Loads certificates that have changed, for as long as it runs."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(RELOAD_INTERVAL_S)
            await loop.run_in_executor(executor, self.reload)

    def reload(self) -> None:
        """Call in a thread. Unreadable files are reported, and the previous ones stay in use."""
        for name, contexts in self._contexts.items():
            if not contexts.is_outdated():
                continue
            try:
                contexts.load()
            except TlsError as error:
                _report_unusable(name, error)
            else:
                logger.info("listener %s has loaded its new certificates", name)


def _report_unusable(listener: str, error: Exception) -> None:
    logger.error("listener %s keeps its current certificate: %s", listener, error)
