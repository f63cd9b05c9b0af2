"""The security of one listener: its TLS, and how it authenticates clients."""

import asyncio
import secrets
import ssl
from collections.abc import Callable

from ottla.network.sasl_gate import LoginPolicy, SaslGate
from ottla.network.security_config import ListenerConfig, SecurityConfig
from ottla.network.session import Session
from ottla.network.session_hub import Hub
from ottla.network.tls import TlsContexts
from ottla.security.audit import Audit, Kind
from ottla.security.errors import AuthenticationFailed
from ottla.security.exchange import Credentials
from ottla.security.oauthbearer import VerifyToken
from ottla.security.principal import ANONYMOUS, USER, Principal
from ottla.security.principal_mapping import PrincipalMapper, distinguished_name

_NONCE_BYTES = 24
_CERTIFICATE = "certificate"
# OpenSSL's reasons for a client without a certificate, and for one without its key.
_REFUSED_HANDSHAKES = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no certificate",
    "BAD_SIGNATURE": "the key does not match the certificate",
}


class ListenerSecurity:
    def __init__(
        self,
        config: ListenerConfig,
        security: SecurityConfig,
        contexts: TlsContexts | None,
        credentials: Callable[[], Credentials | None],
        verify_token: VerifyToken | None = None,
        audit: Audit | None = None,
    ) -> None:
        """`audit` records successful and failed logins."""
        self.contexts = contexts
        self.timeout_s = security.timeout_ms / 1000
        self._config = config
        self._super_users = security.super_users
        self._mapper = PrincipalMapper(config.mapping_rules)
        self._audit = audit
        self._hub: Hub
        self._policy = LoginPolicy(
            mechanisms=config.mechanisms,
            credentials=credentials,
            new_nonce=lambda: secrets.token_urlsafe(_NONCE_BYTES),
            on_login=self._on_login,
            on_refused=self._on_refused,
            lifetime_ms=config.reauthenticate_ms,
            request_bytes_max=security.unauthenticated_bytes_max,
            timeout_ms=security.timeout_ms,
            failure_delay_ms=security.failure_delay_ms,
            verify_token=verify_token,
        )

    def use(self, hub: Hub) -> None:
        self._hub = hub

    @property
    def server_context(self) -> ssl.SSLContext | None:
        """For the next connection."""
        return None if self.contexts is None else self.contexts.server

    def on_connected(self, session: Session, transport: asyncio.Transport) -> None:
        session.may_act_as_node = False
        if self._config.protocol.has_sasl:
            gate = SaslGate(self._policy, self._hub, session)
            session.receiver.guard(gate, self._policy.request_bytes_max)
            return
        try:
            principal = self._certified(transport)
        except AuthenticationFailed as error:
            self._hub.counters.refuse("authentication failed")
            self._hub.quiet_log.warn_rarely(
                "authentication", "refused the certificate of %s: %s", session, error
            )
            self._on_refused(session, _CERTIFICATE, str(error))
            session.abort("its certificate names no user")
            return
        self._know(session, principal, _CERTIFICATE)

    def on_handshake_failed(self, session: Session, error: OSError) -> None:
        """A client with an untrusted certificate is refused like one with a wrong password."""
        reason: str | None = None
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = error.verify_message
        elif isinstance(error, ssl.SSLError):
            reason = _REFUSED_HANDSHAKES.get(error.reason)
        if reason is not None:
            self._on_refused(session, _CERTIFICATE, reason)

    def _certified(self, transport: asyncio.Transport) -> Principal:
        certificate = transport.get_extra_info("peercert")
        if not certificate:
            return ANONYMOUS
        name = distinguished_name(certificate.get("subject", ()))
        return Principal(USER, self._mapper.user(name))

    def _on_login(self, session: Session, principal: Principal, mechanism: str) -> None:
        self._know(session, principal, mechanism)
        if not self._policy.lifetime_ms:
            session.receiver.unguard()

    def _know(self, session: Session, principal: Principal, mechanism: str) -> None:
        session.principal = principal
        session.access = None
        session.may_act_as_node = principal in self._super_users
        if self._audit is not None:
            self._audit.tell(
                Kind.LOGIN,
                session.principal,
                session.peer_address,
                listener=session.listener_name,
                mechanism=mechanism,
            )

    def _on_refused(self, session: Session, mechanism: str, reason: str) -> None:
        if self._audit is not None:
            self._audit.tell(
                Kind.LOGIN_REFUSED,
                None,
                session.peer_address,
                listener=session.listener_name,
                mechanism=mechanism,
                reason=reason,
            )
