"""Client quotas: the entities they are set for, and their precedence (KIP-13, 55, 124, 546, 612).

A quota is set for an entity: a user, a client id, both, or an address; each of them by name, or as
the default for all without a quota of their own. The most specific quota of a client applies:

    user and client id, user and any client id, user,
    any user and client id, any user and any client id, any user,
    client id, any client id

Those who share a quota by name share what it allows: for a user's quota, all connections of the
user. A default is granted to each one separately.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

# The keys for users and client ids; byte rates are whole numbers.
CLIENT_KEYS: Final = (
    PRODUCER_BYTE_RATE,
    CONSUMER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATION_RATE,
)
INTEGER_LIMITS: Final[Mapping[str, int]] = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    CONNECTION_CREATION_RATE: 2**31 - 1,
}

DEFAULT: Final = None  # The name that stands for everyone.

Entity = tuple[tuple[str, str | None], ...]  # Types and names, in type order.
Quotas = Mapping[Entity, Mapping[str, float]]


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    return tuple(sorted(parts, key=lambda part: part[0]))


class Allowance(NamedTuple):
    """What a client may do, and the sharing key: its user, its client id, or both."""

    bound: float
    user: str | None
    client_id: str | None


class QuotaKey:
    """All quotas of one key, such as producer_byte_rate."""

    def __init__(self, quotas: Quotas, key: str) -> None:
        self._quotas = quotas  # Later changes of these apply.
        self._key = key

    def __bool__(self) -> bool:
        return any(self._key in bounds for bounds in self._quotas.values())

    def of_client(self, user: str, client_id: str) -> Allowance | None:
        """None if there is no limit."""
        for entity, shared in _candidates(user, client_id):
            bound = self._bound(entity)
            if bound is not None:
                return Allowance(bound, *shared)
        return None

    def of_address(self, address: str) -> float | None:
        bound = self._bound(((IP, address),))
        return self._bound(((IP, DEFAULT),)) if bound is None else bound

    def _bound(self, entity: Entity) -> float | None:
        bounds = self._quotas.get(entity)
        return None if bounds is None else bounds.get(self._key)


def _candidates(
    user: str, client_id: str
) -> Iterable[tuple[Entity, tuple[str | None, str | None]]]:
    for user_name in (user, DEFAULT):
        for client_name in (client_id, DEFAULT):
            yield ((CLIENT_ID, client_name), (USER, user_name)), (user, client_id)
        yield ((USER, user_name),), (user, None)
    for client_name in (client_id, DEFAULT):
        yield ((CLIENT_ID, client_name),), (None, client_id)
