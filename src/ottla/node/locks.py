"""What a node locks its listeners with, kept fresh: certificates, and the users of the metadata."""

import asyncio
import logging
import secrets
import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Final

from ottla.controller.image import MetadataImage
from ottla.network.listener_security import ListenerSecurity
from ottla.network.security_config import SecurityConfig, SecurityProtocol
from ottla.network.tls import TlsContexts, TlsError
from ottla.network.token_keys import TokenKeys
from ottla.node.users import ImageCredentials
from ottla.node.users_file import Users, read_users
from ottla.security.exchange import Credentials
from ottla.security.oauthbearer import VerifyToken

logger = logging.getLogger(__name__)

RELOAD_INTERVAL_S: Final = 5.0


class Locks:
    def __init__(self, config: SecurityConfig, image: MetadataImage, users_file: str) -> None:
        self._config = config
        self._users_file = users_file
        self.initial_users: Users = {}
        self._contexts = {
            name: TlsContexts(listener.tls)
            for name, listener in config.listeners.items()
            if listener.tls is not None
        }
        self._credentials = ImageCredentials(image, secrets.token_bytes(32))
        self._is_open = False
        self._token_keys = {
            name: TokenKeys(listener.tokens)
            for name, listener in config.listeners.items()
            if listener.tokens is not None
        }
        self.listeners: Mapping[str, ListenerSecurity] = {
            name: ListenerSecurity(
                listener, config, self._contexts.get(name), self.credentials, self._verify(name)
            )
            for name, listener in config.listeners.items()
            if listener.protocol is not SecurityProtocol.PLAINTEXT
        }

    def _verify(self, listener: str) -> VerifyToken | None:
        keys = self._token_keys.get(listener)
        return None if keys is None else keys.verify

    @property
    def token_keys(self) -> list[TokenKeys]:
        """Those that have to be watched."""
        return [keys for keys in self._token_keys.values() if keys.are_fetched]

    @property
    def inter_broker_listener(self) -> str:
        return self._config.inter_broker_listener

    @property
    def protocols(self) -> dict[str, int]:
        """By listener, as a broker registers them."""
        return {name: int(one.protocol) for name, one in self._config.listeners.items()}

    @property
    def peer_tls(self) -> Callable[[], ssl.SSLContext] | None:
        """What connections to other nodes are made with."""
        contexts = self._contexts.get(self.inter_broker_listener)
        return None if contexts is None else lambda: contexts.client

    @property
    def has_files(self) -> bool:
        return bool(self._contexts or self._users_file)

    def open(self) -> None:
        """The image is there, and with it the users."""
        self._is_open = True

    def credentials(self) -> Credentials | None:
        return self._credentials if self._is_open else None

    def load(self) -> None:
        """For a thread. Raises TlsError and UsersFileError."""
        if self._users_file:
            self.initial_users = read_users(self._users_file)
        for contexts in self._contexts.values():
            contexts.load()

    async def watch_files(self, executor: Executor) -> None:
        """Takes up certificates that have changed, for as long as it runs."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(RELOAD_INTERVAL_S)
            await loop.run_in_executor(executor, self.reload)

    def reload(self) -> None:
        """For a thread. What cannot be read is reported, and what was there before stays."""
        for name, contexts in self._contexts.items():
            if not contexts.is_outdated():
                continue
            try:
                contexts.load()
            except TlsError as error:
                logger.error("listener %s keeps the certificate that it has: %s", name, error)
            else:
                logger.info("listener %s has taken up its new certificates", name)
