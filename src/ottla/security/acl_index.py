"""All access control entries of a cluster, indexed by resource and principal.

Names are looked up, never compared one by one: literal names directly, prefixes by each prefix
length in use.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

from ottla.security.acls import WILDCARD, AclBinding, PatternType, ResourceType
from ottla.security.principal import Principal

# The entries with one pattern, by principal.
_Entries = dict[Principal, dict[UUID, AclBinding]]
_Pattern = tuple[ResourceType, str]

_NONE: Final[Mapping[UUID, AclBinding]] = {}


class AclIndex:
    __slots__ = ("_by_id", "_ids", "_literal", "_prefix_lengths", "_prefixed", "version")

    def __init__(self) -> None:
        self.version = 0  # Increases with every change.
        self._clear()

    def _clear(self) -> None:
        self._by_id: dict[UUID, AclBinding] = {}
        self._ids: dict[AclBinding, UUID] = {}
        self._literal: dict[_Pattern, _Entries] = {}
        self._prefixed: dict[_Pattern, _Entries] = {}
        self._prefix_lengths: dict[ResourceType, Counter[int]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AclIndex) and self._by_id == other._by_id

    __hash__ = None  # type: ignore[assignment] # It changes.

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, acl: object) -> bool:
        return acl in self._ids

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self._by_id.values())

    def items(self) -> Iterator[tuple[UUID, AclBinding]]:
        return iter(self._by_id.items())

    def add(self, acl_id: UUID, acl: AclBinding) -> None:
        self.remove(acl_id)
        self.version += 1
        self._by_id[acl_id] = acl
        self._ids[acl] = acl_id
        pattern = (acl.resource_type, acl.resource_name)
        patterns = self._patterns(acl)
        if pattern not in patterns and acl.pattern_type is PatternType.PREFIXED:
            lengths = self._prefix_lengths.setdefault(acl.resource_type, Counter())
            lengths[len(acl.resource_name)] += 1
        patterns.setdefault(pattern, {}).setdefault(acl.principal, {})[acl_id] = acl

    def remove(self, acl_id: UUID) -> None:
        acl = self._by_id.pop(acl_id, None)
        if acl is None:
            return
        self.version += 1
        self._ids.pop(acl, None)
        pattern = (acl.resource_type, acl.resource_name)
        patterns = self._patterns(acl)
        entries = patterns[pattern]
        del entries[acl.principal][acl_id]
        if entries[acl.principal]:
            return
        del entries[acl.principal]
        if entries:
            return
        del patterns[pattern]
        if acl.pattern_type is PatternType.PREFIXED:
            lengths = self._prefix_lengths[acl.resource_type]
            lengths[len(acl.resource_name)] -= 1
            if not lengths[len(acl.resource_name)]:
                del lengths[len(acl.resource_name)]

    def replace_with(self, other: "AclIndex") -> None:
        """Take over the other's content, so that references to this index stay valid."""
        version = self.version + 1
        self._clear()
        for acl_id, acl in other.items():
            self.add(acl_id, acl)
        self.version = version + len(self)

    def entries_for(self, resource_type: ResourceType, name: str) -> list[_Entries]:
        """The entries of every pattern that matches the name."""
        literal = self._literal
        found = [
            entries
            for key in dict.fromkeys((name, WILDCARD))
            if (entries := literal.get((resource_type, key)))
        ]
        found += [
            entries
            for length in self._prefix_lengths.get(resource_type, ())
            if length <= len(name)
            and (entries := self._prefixed.get((resource_type, name[:length])))
        ]
        return found

    def entries_of(
        self, resource_type: ResourceType, principals: tuple[Principal, ...]
    ) -> Iterator[AclBinding]:
        """Entries for resources of a type, for any of the principals."""
        for patterns in (self._literal, self._prefixed):
            for (entry_type, _), entries in patterns.items():
                if entry_type is resource_type:
                    for principal in principals:
                        yield from entries.get(principal, _NONE).values()

    def _patterns(self, acl: AclBinding) -> dict[_Pattern, _Entries]:
        return self._prefixed if acl.pattern_type is PatternType.PREFIXED else self._literal
