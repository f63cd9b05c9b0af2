"""Keys of the audit log."""

from typing import Final

from ottla.protocol.config import at_least, boolean_key, declared_keys, long_key

_RETENTION_BYTES: Final = 104_857_600

AUDIT_LOG_ENABLE = boolean_key(
    "audit.log.enable",
    True,
    "Log logins, refusals, and changes of users, ACLs, configs and topics, as lines of the "
    "component audit. A node without logins, certificates and an authorizer logs none.",
)
AUDIT_TOPIC_ENABLE = boolean_key(
    "audit.topic.enable",
    False,
    "Also write the audit log to the topic __audit_log, as JSON.",
)
AUDIT_TOPIC_RETENTION_BYTES = long_key(
    "audit.topic.retention.bytes",
    _RETENTION_BYTES,
    "retention.bytes of the topic __audit_log, when a node creates it.",
    at_least(1_048_576),
)

BROKER_KEYS = declared_keys(globals())
