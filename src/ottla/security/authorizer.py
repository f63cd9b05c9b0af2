"""Authorization: the decisions of Kafka's StandardAuthorizer.

1. Super users may do everything.
2. An entry that denies wins over every entry that allows.
3. Without an entry for the resource, `allow.everyone.if.no.acl.found` decides; otherwise what no
   entry allows is denied.

An entry that allows reading, writing, deleting or altering also allows describing, and one for
altering configs allows describing them. An entry that denies implies nothing.

Decisions are cached for each principal and host until an entry changes.
"""

from collections.abc import Callable
from typing import Final

from ottla.security.acl_index import AclIndex
from ottla.security.acls import (
    SUPPORTED_OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    host_matches,
)
from ottla.security.principal import ANONYMOUS, Principal

# Clients choose the names that they ask about; this many are cached per client.
DECISIONS_MAX: Final = 10_000

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        {
            Operation.ALL,
            Operation.DESCRIBE,
            Operation.READ,
            Operation.WRITE,
            Operation.DELETE,
            Operation.ALTER,
        }
    ),
    Operation.DESCRIBE_CONFIGS: frozenset(
        {Operation.ALL, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}
    ),
}

# Enum members are slow to look up.
_ALL: Final = Operation.ALL
_ALLOW: Final = Permission.ALLOW
_DENY: Final = Permission.DENY

# Kafka asks for this name to find out whether a client may do something to any resource at all.
_ANY_NAME: Final = "hardcode"

# Called with what was requested and refused.
OnRefused = Callable[["Access", Operation, ResourceType, str], None]


class Authorizer:
    def __init__(
        self,
        acls: AclIndex,
        super_users: frozenset[Principal] = frozenset(),
        *,
        allow_everyone: bool = False,
        on_refused: OnRefused | None = None,
    ) -> None:
        """`allow_everyone` applies to resources without entries."""
        self.acls = acls
        self.is_loaded = True  # If not, only super users may do anything.
        self.on_refused = on_refused
        self._super_users = super_users
        self._allow_everyone = allow_everyone

    def access(self, principal: Principal, host: str) -> "Access":
        return AuthorizedAccess(self, principal, host)

    def decide(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        if principal in self._super_users:
            return True
        if not self.is_loaded:
            return False
        patterns = self.acls.entries_for(resource_type, name)
        if not patterns:
            return self._allow_everyone
        implied_by = _IMPLIED_BY.get(operation) or (_ALL, operation)
        allowed = False
        for entries in patterns:
            for holder in (principal, WILDCARD_PRINCIPAL):
                for acl in entries.get(holder, {}).values():
                    if acl.permission is _ALLOW:
                        allowed = allowed or (
                            acl.operation in implied_by and host_matches(acl.host, host)
                        )
                    elif acl.operation in (_ALL, operation) and host_matches(acl.host, host):
                        return False
        return allowed

    def decide_any(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there may be a resource on which the operation is allowed."""
        if self.decide(principal, host, operation, resource_type, _ANY_NAME):
            return True
        if not self.is_loaded:
            return False
        entries = [
            acl
            for acl in self.acls.entries_of(resource_type, (principal, WILDCARD_PRINCIPAL))
            if acl.operation in (_ALL, operation) and host_matches(acl.host, host)
        ]
        denied = {_pattern(acl) for acl in entries if acl.permission is _DENY}
        if _EVERYTHING in denied:
            return False
        allowed = {_pattern(acl) for acl in entries if acl.permission is _ALLOW}
        return any(not _is_dominated(pattern, denied) for pattern in allowed)


def _pattern(acl: AclBinding) -> tuple[PatternType, str]:
    return acl.pattern_type, acl.resource_name


_EVERYTHING: Final = (PatternType.LITERAL, WILDCARD)


def _is_dominated(allowed: tuple[PatternType, str], denied: set[tuple[PatternType, str]]) -> bool:
    """Whether another pattern denies everything that this one allows."""
    if allowed == _EVERYTHING or not denied:
        return False
    pattern_type, name = allowed
    return (pattern_type is PatternType.LITERAL and allowed in denied) or any(
        (PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1)
    )


class Access:
    """What one client may do. Without an authorizer: everything."""

    __slots__ = ("host", "principal", "readable", "version", "writable")

    def __init__(self, principal: Principal = ANONYMOUS, host: str = "") -> None:
        self.principal = principal
        self.host = host
        self.version = -1  # Of the entries that the decisions are based on.
        # Topics, by name or id, that may be read and written; filled and used by fetch and produce.
        self.readable: set[object] = set()
        self.writable: set[object] = set()

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """For silent filtering; see `authorize` for explicit requests."""
        del operation, resource_type, name
        return True

    def may_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there may be a resource of the type on which the operation is allowed."""
        del operation, resource_type
        return True

    def authorize(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Like `may`, but a refusal is reported."""
        return self.may(operation, resource_type, name)

    def operations(self, resource_type: ResourceType, name: str) -> int:
        """The allowed operations, as the bits used in responses."""
        bits = 0
        for operation in SUPPORTED_OPERATIONS[resource_type]:
            if self.may(operation, resource_type, name):
                bits |= 1 << operation
        return bits


UNLIMITED: Final = Access()


class AuthorizedAccess(Access):
    __slots__ = ("_acls", "_authorizer", "_decisions")

    def __init__(self, authorizer: Authorizer, principal: Principal, host: str) -> None:
        super().__init__(principal, host)
        self._authorizer = authorizer
        self._acls = authorizer.acls
        self._decisions: dict[tuple[Operation, ResourceType, str | None], bool] = {}

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        if self.version != self._acls.version:
            self._forget()
        decision = self._decisions.get((operation, resource_type, name))
        if decision is None:
            decision = self._authorizer.decide(
                self.principal, self.host, operation, resource_type, name
            )
            self._keep((operation, resource_type, name), decision=decision)
        return decision

    def may_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        if self.version != self._acls.version:
            self._forget()
        decision = self._decisions.get((operation, resource_type, None))
        if decision is None:
            decision = self._authorizer.decide_any(
                self.principal, self.host, operation, resource_type
            )
            self._keep((operation, resource_type, None), decision=decision)
        return decision

    def authorize(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        if self.may(operation, resource_type, name):
            return True
        on_refused = self._authorizer.on_refused
        if on_refused is not None:
            on_refused(self, operation, resource_type, name)
        return False

    def _keep(self, key: tuple[Operation, ResourceType, str | None], *, decision: bool) -> None:
        if not self._authorizer.is_loaded:
            return
        if len(self._decisions) >= DECISIONS_MAX:
            self._forget()
        self._decisions[key] = decision

    def _forget(self) -> None:
        self._decisions.clear()
        self.readable.clear()
        self.writable.clear()
        self.version = self._acls.version
