"""Delegation tokens as the controller keeps them."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from kio.schema.create_delegation_token.v3.request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kio.schema.expire_delegation_token.v2.request import ExpireDelegationTokenRequest
from kio.schema.renew_delegation_token.v2.request import RenewDelegationTokenRequest
from kio.static.primitive import i64Timedelta
from tests.controller.cluster import Cluster

from ottla.controller.image import MetadataImage
from ottla.controller.mutations import Caller
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.security.delegation_tokens import TokenSecret
from ottla.security.principal import Principal

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ALICE, BOB, EVE = (Principal("User", name) for name in ("alice", "bob", "eve"))


def period(time_ms: int) -> i64Timedelta:
    return i64Timedelta.parse(timedelta(milliseconds=time_ms))


def creation(**changes: Any) -> CreateDelegationTokenRequest:
    values: dict[str, Any] = {
        "owner_principal_type": None,
        "owner_principal_name": None,
        "renewers": (CreatableRenewers(principal_type="User", principal_name="bob"),),
        "max_lifetime": period(-1),
    }
    return CreateDelegationTokenRequest(**{**values, **changes})


def call(cluster: Cluster, principal: Principal, request: object) -> Any:
    return cluster.call(request, Caller(principal, "127.0.0.1", "app"))


def refused(cluster: Cluster, principal: Principal, request: object) -> ErrorCode:
    with pytest.raises(ApiError) as error:
        call(cluster, principal, request)
    return error.value.code


def milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(delegation_token_secret_key="geheim")
    cluster.reload()
    cluster.advance(1_000)
    return cluster


def test_a_token_has_an_id_and_the_hmac_of_it(cluster: Cluster) -> None:
    token = call(cluster, ALICE, creation())
    assert token.hmac == TokenSecret("geheim").hmac(token.token_id)
    assert len(token.token_id) == 22
    assert (token.principal_name, token.token_requester_principal_name) == ("alice", "alice")
    assert milliseconds(token.issue_timestamp) == cluster.now_ms
    assert milliseconds(token.expiry_timestamp) == cluster.now_ms + DAY_MS
    assert milliseconds(token.max_timestamp) == cluster.now_ms + 7 * DAY_MS
    assert "geheim" not in str(cluster.records)


def test_a_shorter_life_can_be_asked_for_and_a_longer_one_not(cluster: Cluster) -> None:
    short = call(cluster, ALICE, creation(max_lifetime=period(HOUR_MS)))
    long = call(cluster, ALICE, creation(max_lifetime=period(100 * DAY_MS)))
    assert milliseconds(short.expiry_timestamp) == cluster.now_ms + HOUR_MS
    assert milliseconds(long.max_timestamp) == cluster.now_ms + 7 * DAY_MS


def test_a_token_can_be_for_somebody_else(cluster: Cluster) -> None:
    request = creation(owner_principal_type="User", owner_principal_name="eve")
    token = call(cluster, ALICE, request)
    assert (token.principal_name, token.token_requester_principal_name) == ("eve", "alice")
    assert cluster.image.delegation_tokens[token.token_id].owner == EVE


def test_owner_and_renewers_renew_and_others_do_not(cluster: Cluster) -> None:
    token = call(cluster, ALICE, creation())
    renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period=period(2 * HOUR_MS))
    cluster.advance(HOUR_MS)
    for principal in (ALICE, BOB):
        renewed = call(cluster, principal, renewal)
        assert milliseconds(renewed.expiry_timestamp) == cluster.now_ms + 2 * HOUR_MS
    assert refused(cluster, EVE, renewal) is ErrorCode.delegation_token_owner_mismatch


def test_no_renewal_goes_past_the_longest_life(cluster: Cluster) -> None:
    token = call(cluster, ALICE, creation(max_lifetime=period(2 * HOUR_MS)))
    cluster.advance(HOUR_MS)
    renewed = call(
        cluster, ALICE, RenewDelegationTokenRequest(hmac=token.hmac, renew_period=period(-1))
    )
    assert renewed.expiry_timestamp == token.max_timestamp


def test_an_expired_token_is_not_renewed_and_is_removed(cluster: Cluster) -> None:
    token = call(cluster, ALICE, creation(max_lifetime=period(10)))
    cluster.advance(20)
    renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period=period(-1))
    assert refused(cluster, ALICE, renewal) is ErrorCode.delegation_token_expired
    cluster.advance(HOUR_MS)
    assert cluster.image.delegation_tokens == {}
    assert refused(cluster, ALICE, renewal) is ErrorCode.delegation_token_not_found


def test_a_token_is_ended_at_once_or_later(cluster: Cluster) -> None:
    first, second = call(cluster, ALICE, creation()), call(cluster, ALICE, creation())
    ending = ExpireDelegationTokenRequest(hmac=first.hmac, expiry_time_period=period(-1))
    assert refused(cluster, EVE, ending) is ErrorCode.delegation_token_owner_mismatch
    call(cluster, BOB, ending)
    later = ExpireDelegationTokenRequest(hmac=second.hmac, expiry_time_period=period(HOUR_MS))
    expired = call(cluster, ALICE, later)
    assert milliseconds(expired.expiry_timestamp) == cluster.now_ms + HOUR_MS
    assert set(cluster.image.delegation_tokens) == {second.token_id}


def test_only_users_renew(cluster: Cluster) -> None:
    renewer = CreatableRenewers(principal_type="Group", principal_name="admins")
    assert refused(cluster, ALICE, creation(renewers=(renewer,))) is (
        ErrorCode.invalid_principal_type
    )


def test_without_a_secret_there_are_no_tokens() -> None:
    cluster = Cluster()
    for request in (
        creation(),
        RenewDelegationTokenRequest(hmac=b"x", renew_period=period(-1)),
        ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period=period(-1)),
    ):
        assert refused(cluster, ALICE, request) is ErrorCode.delegation_token_auth_disabled


def test_a_snapshot_has_the_tokens(cluster: Cluster) -> None:
    call(cluster, ALICE, creation())
    image = MetadataImage()
    for record in cluster.image.snapshot():
        image.replay(record)
    assert image == cluster.image
    assert image.delegation_tokens
