"""The security settings of listeners, with Kafka's names, and their values per listener."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from ottla.network.audit_config import BROKER_KEYS as AUDIT_KEYS
from ottla.network.endpoints import Endpoint
from ottla.network.peer_login import PeerLogin, parse_jaas
from ottla.network.tls import ClientAuth, TlsConfig
from ottla.network.token_config import BROKER_KEYS as TOKEN_KEYS
from ottla.network.token_config import token_config
from ottla.network.token_keys import TokenConfig
from ottla.protocol.config import (
    LISTENER_PREFIX,
    ConfigKey,
    ConfigValues,
    at_least,
    boolean_key,
    declared_keys,
    each_of,
    int_key,
    key_of_listener,
    list_key,
    long_key,
    one_of,
    password_key,
    read_by,
    string_key,
)
from ottla.protocol.lazy_dataclass import dataclass
from ottla.security.exchange import PLAIN
from ottla.security.oauthbearer import OAUTHBEARER
from ottla.security.principal import Principal, parse_super_users
from ottla.security.principal_mapping import PrincipalMapper
from ottla.security.scram import SCRAM_MECHANISMS

T = TypeVar("T")

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class SecurityProtocol(enum.IntEnum):
    """The values of BrokerRegistration."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


_PROTOCOLS: Final = tuple(protocol.name for protocol in SecurityProtocol)


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    """`NAME:PROTOCOL`, comma-separated; ValueError for anything else."""
    protocols = {}
    for item in filter(None, map(str.strip, text.split(","))):
        name, _, protocol = item.partition(":")
        if not name or protocol.upper() not in _PROTOCOLS:
            raise ValueError(f"{item!r} is not of the form NAME:{'|'.join(_PROTOCOLS)}")
        protocols[name.upper()] = SecurityProtocol[protocol.upper()]
    return protocols


LISTENER_SECURITY_PROTOCOL_MAP = string_key(
    "listener.security.protocol.map",
    ",".join(f"{name}:{name}" for name in ("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")),
    "The protocol of each listener: NAME:PROTOCOL, comma-separated. PLAINTEXT is not secured; SSL"
    " is TLS, SASL_PLAINTEXT a login without TLS, SASL_SSL a login over TLS.",
    read_by(parse_protocol_map),
)
CONTROLLER_LISTENER_NAMES: ConfigKey[tuple[str, ...]] = list_key(
    "controller.listener.names",
    (),
    "Listeners that Kafka reserves for controllers. Here they serve like any other, and speak "
    "PLAINTEXT unless listener.security.protocol.map says otherwise.",
)
SECURITY_INTER_BROKER_PROTOCOL = string_key(
    "security.inter.broker.protocol",
    "",
    "The listener of this name is used between nodes, if it exists and inter.broker.listener.name"
    " is not set.",
    one_of("", *_PROTOCOLS),
)
INTER_BROKER_LISTENER_NAME = string_key(
    "inter.broker.listener.name",
    "",
    "The listener that nodes use to talk to each other, including the metadata quorum. By default"
    " the one named by security.inter.broker.protocol, or else the first.",
)
SSL_KEYSTORE_TYPE = string_key(
    "ssl.keystore.type",
    "PEM",
    "The format of the broker's key and certificates. Only PEM is read.",
    one_of("PEM"),
    dynamic=True,
    per_listener=True,
)
SSL_KEYSTORE_LOCATION = string_key(
    "ssl.keystore.location",
    "",
    "A PEM file with the broker's private key, its certificate and the chain above it. It is "
    "reloaded when it changes. Other users must not be able to read it.",
    dynamic=True,
    per_listener=True,
)
SSL_KEYSTORE_CERTIFICATE_CHAIN = string_key(
    "ssl.keystore.certificate.chain",
    "",
    "The broker's certificate and the chain above it, in PEM, instead of a file.",
    dynamic=True,
    per_listener=True,
)
SSL_KEYSTORE_KEY = password_key(
    "ssl.keystore.key",
    "",
    "The broker's private key, in PEM, instead of a file.",
    dynamic=True,
    per_listener=True,
)
SSL_KEY_PASSWORD = password_key(
    "ssl.key.password",
    "",
    "The password of an encrypted private key.",
    dynamic=True,
    per_listener=True,
)
SSL_TRUSTSTORE_TYPE = string_key(
    "ssl.truststore.type",
    "PEM",
    "The format of the trusted certificates. Only PEM is read.",
    one_of("PEM"),
    dynamic=True,
    per_listener=True,
)
SSL_TRUSTSTORE_LOCATION = string_key(
    "ssl.truststore.location",
    "",
    "A PEM file with the certificates of trusted authorities. It is reloaded when it changes. By "
    "default those of the operating system are trusted.",
    dynamic=True,
    per_listener=True,
)
SSL_TRUSTSTORE_CERTIFICATES = string_key(
    "ssl.truststore.certificates",
    "",
    "The certificates of trusted authorities, in PEM, instead of a file.",
    dynamic=True,
    per_listener=True,
)
SSL_CLIENT_AUTH = string_key(
    "ssl.client.auth",
    ClientAuth.NONE.value,
    "Whether clients present a certificate: required, requested (if they have one), or none.",
    one_of(*(choice.value for choice in ClientAuth)),
    per_listener=True,
)
SSL_ENABLED_PROTOCOLS: ConfigKey[tuple[str, ...]] = list_key(
    "ssl.enabled.protocols",
    ("TLSv1.2", "TLSv1.3"),
    "The enabled TLS versions.",
    each_of("TLSv1.2", "TLSv1.3"),
    per_listener=True,
)
SSL_ENDPOINT_IDENTIFICATION_ALGORITHM = string_key(
    "ssl.endpoint.identification.algorithm",
    "https",
    "Whether a node checks the host name in the certificate of another: https, or empty for no "
    "check.",
    one_of("https", ""),
    per_listener=True,
)
SSL_PRINCIPAL_MAPPING_RULES = string_key(
    "ssl.principal.mapping.rules",
    "DEFAULT",
    "How the name in a client's certificate maps to a user: RULE:pattern/replacement/[LU] or "
    "DEFAULT, comma-separated; the first match wins.",
    read_by(PrincipalMapper),
    per_listener=True,
)
SASL_ENABLED_MECHANISMS: ConfigKey[tuple[str, ...]] = list_key(
    "sasl.enabled.mechanisms",
    tuple(SCRAM_MECHANISMS),
    "How clients may log in: SCRAM-SHA-256, SCRAM-SHA-512, PLAIN, OAUTHBEARER. (Kafka's default, "
    "GSSAPI, is not supported.) PLAIN uses the SCRAM users.",
    each_of(*SCRAM_MECHANISMS, PLAIN, OAUTHBEARER),
    per_listener=True,
)
SASL_MECHANISM_INTER_BROKER_PROTOCOL = string_key(
    "sasl.mechanism.inter.broker.protocol",
    "SCRAM-SHA-512",
    "How nodes log in to each other, if inter.broker.listener.name requires logins: SCRAM-SHA-256"
    " or SCRAM-SHA-512.",
)
_JAAS_DOC: Final = (
    "How this node logs in to others, if inter.broker.listener.name requires logins: "
    'org.apache.kafka.common.security.scram.ScramLoginModule required username="..." '
    'password="...";'
)
SASL_JAAS_CONFIG, *_JAAS_OF_MECHANISMS = (
    password_key(f"{prefix}sasl.jaas.config", "", _JAAS_DOC, per_listener=True)
    for prefix in ("", *(f"{name.lower()}." for name in SCRAM_MECHANISMS))
)
SASL_PLAIN_WITHOUT_TLS = boolean_key(
    "sasl.plain.without.tls",
    False,
    "Whether to allow PLAIN and OAUTHBEARER on a SASL_PLAINTEXT listener, where anyone on the "
    "network can read passwords and tokens.",
    per_listener=True,
)
SASL_SERVER_MAX_RECEIVE_SIZE = int_key(
    "sasl.server.max.receive.size",
    524_288,
    "The largest request before a login.",
    at_least(1),
)
CONNECTIONS_MAX_REAUTH_MS = long_key(
    "connections.max.reauth.ms",
    0,
    "How long a login lasts before the client has to log in again on the same connection (KIP-368);"
    " 0 for as long as the connection.",
    at_least(0),
    per_listener=True,
)
CONNECTION_FAILED_AUTHENTICATION_DELAY_MS = int_key(
    "connection.failed.authentication.delay.ms",
    100,
    "How long a failed login is delayed before it is answered.",
    at_least(0),
)
AUTHENTICATION_TIMEOUT_MS = int_key(
    "authentication.timeout.ms",
    30_000,
    "How long a new connection may take for its TLS handshake, and again for its login; then it is "
    "closed.",
    at_least(1),
)
SUPER_USERS = string_key(
    "super.users",
    "",
    "Users that may do everything, separated by semicolons: User:admin;User:CN=node. On listeners "
    "that authenticate, only they may act as nodes of the cluster.",
    read_by(parse_super_users),
)
AUTHORIZER_CLASS_NAME = string_key(
    "authorizer.class.name",
    "",
    f"{STANDARD_AUTHORIZER} checks every request against the cluster's access control entries. "
    "Empty: everyone who can connect may do everything. Set it on every node.",
    one_of("", STANDARD_AUTHORIZER),
)
ALLOW_EVERYONE_IF_NO_ACL_FOUND = boolean_key(
    "allow.everyone.if.no.acl.found",
    False,
    "Whether everyone may use a resource without any access control entry. Nodes need "
    "CLUSTER_ACTION, so if this is off, list them in super.users.",
)

BROKER_KEYS = (
    *declared_keys(globals()),
    *_JAAS_OF_MECHANISMS,
    *TOKEN_KEYS,
    *AUDIT_KEYS,
)


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """The security of one listener."""

    name: str
    protocol: SecurityProtocol
    tls: TlsConfig | None = None
    mapping_rules: str = SSL_PRINCIPAL_MAPPING_RULES.default
    mechanisms: tuple[str, ...] = ()
    reauthenticate_ms: int = 0
    tokens: TokenConfig | None = None  # With OAUTHBEARER.

    @property
    def is_locked(self) -> bool:
        """Whether all clients are authenticated and all traffic is protected."""
        if self.tls is None:
            return False
        return self.protocol.has_sasl or self.tls.client_auth is ClientAuth.REQUIRED


@dataclass(frozen=True, slots=True)
class SecurityConfig:
    listeners: Mapping[str, ListenerConfig]
    inter_broker_listener: str
    super_users: frozenset[Principal] = frozenset()
    unauthenticated_bytes_max: int = SASL_SERVER_MAX_RECEIVE_SIZE.default
    failure_delay_ms: int = CONNECTION_FAILED_AUTHENTICATION_DELAY_MS.default
    timeout_ms: int = AUTHENTICATION_TIMEOUT_MS.default
    node_login: PeerLogin | None = None  # This node's login at others.

    @classmethod
    def of(cls, values: ConfigValues, endpoints: Sequence[Endpoint]) -> "SecurityConfig":
        """ValueError, with one sentence, for inconsistent settings."""
        protocols = dict.fromkeys(
            (name.upper() for name in values[CONTROLLER_LISTENER_NAMES]), SecurityProtocol.PLAINTEXT
        )
        protocols |= parse_protocol_map(values[LISTENER_SECURITY_PROTOCOL_MAP])
        listeners = {}
        for endpoint in endpoints:
            name = endpoint.listener_name
            if name not in protocols:
                raise ValueError(
                    f"listener {name} has no protocol; say one in listener.security.protocol.map"
                )
            listeners[name] = _listener(values, name, protocols[name])
        inter_broker = values[INTER_BROKER_LISTENER_NAME].upper()
        if not inter_broker:
            named = values[SECURITY_INTER_BROKER_PROTOCOL]
            inter_broker = named if named in listeners else endpoints[0].listener_name
        if inter_broker not in listeners:
            raise ValueError(f"inter.broker.listener.name is {inter_broker}, which does not listen")
        return cls(
            listeners,
            inter_broker,
            parse_super_users(values[SUPER_USERS]),
            values[SASL_SERVER_MAX_RECEIVE_SIZE],
            values[CONNECTION_FAILED_AUTHENTICATION_DELAY_MS],
            values[AUTHENTICATION_TIMEOUT_MS],
            _node_login(values, listeners[inter_broker]),
        )


def _node_login(values: ConfigValues, listener: ListenerConfig) -> PeerLogin | None:
    """None if nodes need none, which includes a node that is alone."""
    if not listener.protocol.has_sasl:
        return None
    mechanism = values[SASL_MECHANISM_INTER_BROKER_PROTOCOL]
    if mechanism not in SCRAM_MECHANISMS:
        return None
    of_mechanism = _JAAS_OF_MECHANISMS[tuple(SCRAM_MECHANISMS).index(mechanism)]
    for key in (of_mechanism, SASL_JAAS_CONFIG):
        text = values[key_of_listener(replace(key, default=values[key]), listener.name)]
        if text:
            return parse_jaas(mechanism, text)
    return None


def validate_listener_keys(names: Sequence[str], endpoints: Sequence[Endpoint]) -> None:
    """ValueError for a key of an unknown listener."""
    prefixes = tuple(
        f"{LISTENER_PREFIX}{endpoint.listener_name.lower()}." for endpoint in endpoints
    )
    for name in names:
        if name.startswith(LISTENER_PREFIX) and not name.startswith(prefixes):
            raise ValueError(f"{name} is for a listener that is not in listeners")


def tls_config(values: ConfigValues, name: str) -> TlsConfig:
    """Of a listener with TLS. ValueError, with one sentence, for inconsistent settings."""

    def value(key: ConfigKey[T]) -> T:
        return values[key_of_listener(replace(key, default=values[key]), name)]

    tls = TlsConfig(
        keystore_location=value(SSL_KEYSTORE_LOCATION),
        certificate_chain=value(SSL_KEYSTORE_CERTIFICATE_CHAIN),
        key=value(SSL_KEYSTORE_KEY),
        key_password=value(SSL_KEY_PASSWORD),
        truststore_location=value(SSL_TRUSTSTORE_LOCATION),
        truststore_certificates=value(SSL_TRUSTSTORE_CERTIFICATES),
        client_auth=ClientAuth(value(SSL_CLIENT_AUTH)),
        protocols=value(SSL_ENABLED_PROTOCOLS),
        checks_host_name=bool(value(SSL_ENDPOINT_IDENTIFICATION_ALGORITHM)),
    )
    problem = tls.problem()
    if problem:
        raise ValueError(f"listener {name} speaks TLS, and {problem}")
    return tls


def _listener(values: ConfigValues, name: str, protocol: SecurityProtocol) -> ListenerConfig:
    def value(key: ConfigKey[T]) -> T:
        return values[key_of_listener(replace(key, default=values[key]), name)]

    config = ListenerConfig(name, protocol)
    if protocol.has_tls:
        tls = tls_config(values, name)
        config = replace(config, tls=tls, mapping_rules=value(SSL_PRINCIPAL_MAPPING_RULES))
    if protocol.has_sasl:
        mechanisms = value(SASL_ENABLED_MECHANISMS)
        if not mechanisms:
            raise ValueError(f"listener {name} wants a login, and sasl.enabled.mechanisms is empty")
        readable = [mechanism for mechanism in (PLAIN, OAUTHBEARER) if mechanism in mechanisms]
        if readable and not protocol.has_tls and not value(SASL_PLAIN_WITHOUT_TLS):
            what = "passwords" if readable[0] == PLAIN else "tokens"
            raise ValueError(
                f"listener {name} offers {readable[0]} without TLS, where everyone on the way can "
                f"read the {what}; make it SASL_SSL, use SCRAM, or set sasl.plain.without.tls=true"
            )
        config = replace(
            config, mechanisms=mechanisms, reauthenticate_ms=value(CONNECTIONS_MAX_REAUTH_MS)
        )
        if OAUTHBEARER in mechanisms:
            config = replace(config, tokens=token_config(name, value))
    return config
