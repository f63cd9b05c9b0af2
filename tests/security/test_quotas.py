import pytest

from ottla.security.quotas import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    USER,
    Allowance,
    Entity,
    QuotaKey,
    entity_of,
)

# Most specific first.
LEVELS: list[tuple[Entity, tuple[str | None, str | None]]] = [
    (entity_of([(USER, "ann"), (CLIENT_ID, "app")]), ("ann", "app")),
    (entity_of([(USER, "ann"), (CLIENT_ID, None)]), ("ann", "app")),
    (entity_of([(USER, "ann")]), ("ann", None)),
    (entity_of([(USER, None), (CLIENT_ID, "app")]), ("ann", "app")),
    (entity_of([(USER, None), (CLIENT_ID, None)]), ("ann", "app")),
    (entity_of([(USER, None)]), ("ann", None)),
    (entity_of([(CLIENT_ID, "app")]), (None, "app")),
    (entity_of([(CLIENT_ID, None)]), (None, "app")),
]


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_the_most_specific_quota_counts(level: int) -> None:
    quotas = {
        entity: {PRODUCER_BYTE_RATE: float(index)}
        for index, (entity, _) in enumerate(LEVELS)
        if index >= level
    }
    allowance = QuotaKey(quotas, PRODUCER_BYTE_RATE).of_client("ann", "app")
    assert allowance == Allowance(level, *LEVELS[level][1])


def test_quotas_of_others_and_of_other_keys_do_not_count() -> None:
    quotas = {
        entity_of([(USER, "bob")]): {PRODUCER_BYTE_RATE: 1.0},
        entity_of([(USER, "ann"), (CLIENT_ID, "other")]): {PRODUCER_BYTE_RATE: 1.0},
        entity_of([(USER, "ann")]): {CONNECTION_CREATION_RATE: 1.0},
    }
    assert QuotaKey(quotas, PRODUCER_BYTE_RATE).of_client("ann", "app") is None


def test_an_address_has_its_own_rate_or_the_default() -> None:
    quotas = {
        entity_of([(IP, "10.0.0.1")]): {CONNECTION_CREATION_RATE: 5.0},
        entity_of([(IP, None)]): {CONNECTION_CREATION_RATE: 9.0},
    }
    rates = QuotaKey(quotas, CONNECTION_CREATION_RATE)
    assert (rates.of_address("10.0.0.1"), rates.of_address("10.0.0.2")) == (5, 9)
    assert QuotaKey({}, CONNECTION_CREATION_RATE).of_address("10.0.0.1") is None
