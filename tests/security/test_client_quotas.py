from ottla.security.client_quotas import METERS_UNSWEPT_MAX, ClientQuotas
from ottla.security.quotas import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    USER,
    Entity,
    entity_of,
)
from ottla.security.rates import Windows

ANN: Entity = entity_of([(USER, "ann")])
ANY_CLIENT: Entity = entity_of([(CLIENT_ID, None)])


def quotas_of(entity: Entity, key: str, bound: float) -> ClientQuotas:
    quotas = ClientQuotas(Windows(11, 1000))
    quotas.load({entity: {key: bound}})
    return quotas


def test_sessions_of_one_user_share_its_quota() -> None:
    quotas = quotas_of(ANN, PRODUCER_BYTE_RATE, 100)
    first, second = quotas.of(None, "ann", "a", 0), quotas.of(None, "ann", "b", 0)
    assert first.produce is not None
    assert first.produce is second.produce
    assert (first.fetch, first.request) == (None, None)
    assert quotas.of(None, "bob", "a", 0).produce is None


def test_a_default_is_allowed_to_each_one_that_it_stands_for() -> None:
    quotas = quotas_of(ANY_CLIENT, PRODUCER_BYTE_RATE, 100)
    assert quotas.of(None, "ann", "a", 0).produce is not quotas.of(None, "ann", "b", 0).produce
    assert quotas.of(None, "ann", "a", 0).produce is quotas.of(None, "bob", "a", 0).produce


def test_a_session_is_looked_up_once_and_again_when_quotas_or_its_client_id_change() -> None:
    quotas = quotas_of(ANN, PRODUCER_BYTE_RATE, 100)
    known = quotas.of(None, "ann", "a", 0)
    assert quotas.of(known, "ann", "a", 0) is known
    assert quotas.of(known, "ann", "b", 0) is not known
    assert known.produce is not None
    known.produce.count(5000, 0)
    quotas.load({ANN: {PRODUCER_BYTE_RATE: 400}})
    again = quotas.of(known, "ann", "a", 0)
    assert again.produce is known.produce
    assert again.produce.count(0, 0) == 2500  # 5000 bytes in the ten windows of 4000.
    quotas.load({})
    assert quotas.of(again, "ann", "a", 0).produce is None
    assert not quotas.enabled


def test_records_that_are_not_sent_do_not_count() -> None:
    meter = quotas_of(ANN, CONSUMER_BYTE_RATE, 100).of(None, "ann", None, 0).fetch
    assert meter is not None
    assert meter.count_if_allowed(600, 0) == 0
    assert meter.count_if_allowed(600, 0) == 2000
    assert meter.count_if_allowed(400, 0) == 0


def test_records_that_are_larger_than_all_windows_allow_wait_for_empty_ones() -> None:
    meter = quotas_of(ANN, CONSUMER_BYTE_RATE, 100).of(None, "ann", None, 0).fetch
    assert meter is not None
    assert meter.count_if_allowed(5000, 0) == 0
    assert meter.count_if_allowed(5000, 1) > 0
    assert meter.count_if_allowed(5000, 10_000) > 0
    assert meter.count_if_allowed(5000, 11_001) == 0


def test_client_ids_without_end_leave_nothing_behind() -> None:
    quotas = quotas_of(ANY_CLIENT, PRODUCER_BYTE_RATE, 100)
    first = quotas.of(None, "ann", "first", 0)
    assert first.produce is not None
    for index in range(10 * METERS_UNSWEPT_MAX):
        now_ms = index * 100
        first = quotas.of(first, "ann", "first", now_ms)
        assert first.produce is not None
        first.produce.count(10, now_ms)
        found = quotas.of(None, "ann", f"client-{index}", now_ms)
        assert found.produce is not None
        found.produce.count(1, now_ms)
    assert quotas.meters <= 2 * METERS_UNSWEPT_MAX
    known = quotas.of(None, "ann", "first", now_ms)
    assert known.produce is not None
    assert known.produce.rate.per_second(now_ms) > 90  # Unaffected by the others.
