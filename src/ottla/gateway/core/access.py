"""How a gateway connects to its cluster, and as which user."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.librdkafka_settings import security_of

CLIENT_ID: Final = "ottla-gateway"

_MECHANISM: Final = "SCRAM-SHA-512"  # Unless the gateway itself logs in with another mechanism.
_WITH_LOGIN: Final = {"plaintext": "sasl_plaintext", "ssl": "sasl_ssl"}


@dataclass(frozen=True, slots=True)
class Access:
    bootstrap_servers: str
    # Connection and login settings, as librdkafka spells them.
    login: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def user(self) -> str | None:
        """None without a password login."""
        name = self.login.get("sasl.username")
        return None if name is None else str(name)

    def as_user(self, name: str, password: str) -> Self:
        """The same cluster access with a broker user's login."""
        protocol = str(self.login.get("security.protocol", "plaintext")).lower()
        mechanism = self.login.get("sasl.mechanism") or self.login.get("sasl.mechanisms")
        login = {
            **{key: value for key, value in self.login.items() if not key.startswith("sasl.")},
            "security.protocol": _WITH_LOGIN.get(protocol, protocol),
            "sasl.mechanism": mechanism or _MECHANISM,
            "sasl.username": name,
            "sasl.password": password,
        }
        return type(self)(self.bootstrap_servers, login)

    def cluster(self, *, retry_timeout_ms: int = 60_000) -> Cluster:
        return Cluster(
            self.bootstrap_servers,
            client_id=CLIENT_ID,
            retry_timeout_ms=retry_timeout_ms,
            security=security_of(self.login),
        )

    def client_settings(self) -> dict[str, Any]:
        """Settings for librdkafka."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.login}
