"""The keys of the audit log."""

from typing import Final, cast

from ottla.protocol.config import ConfigKey, ConfigType, at_least

_RETENTION_BYTES: Final = 104_857_600

AUDIT_LOG_ENABLE = ConfigKey(
    "audit.log.enable",
    ConfigType.BOOLEAN,
    True,
    "Log logins, refusals, and changes of users, ACLs, configs and topics, as lines of the "
    "component audit. A node without logins, certificates and an authorizer logs none.",
)
AUDIT_TOPIC_ENABLE = ConfigKey(
    "audit.topic.enable",
    ConfigType.BOOLEAN,
    False,
    "Also write the audit log to the topic __audit_log, as JSON.",
)
AUDIT_TOPIC_RETENTION_BYTES = ConfigKey(
    "audit.topic.retention.bytes",
    ConfigType.LONG,
    _RETENTION_BYTES,
    "retention.bytes of the topic __audit_log, when a node creates it.",
    at_least(1_048_576),
)

BROKER_KEYS: tuple[ConfigKey[object], ...] = cast(
    "tuple[ConfigKey[object], ...]",
    (AUDIT_LOG_ENABLE, AUDIT_TOPIC_ENABLE, AUDIT_TOPIC_RETENTION_BYTES),
)
