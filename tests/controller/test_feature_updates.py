from typing import Any

import pytest
from kio.schema.broker_registration.v4.request import Feature
from kio.schema.update_features.v2.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16
from tests.controller.cluster import Cluster, answered

from ottla.controller.features import finalized_levels
from ottla.controller.records import FeatureLevelRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode

NAME = "transaction.version"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def update(
    cluster: Cluster, *updates: tuple[str, int, int], validate_only: bool = False
) -> Result[Any]:
    request = UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=i16(level), upgrade_type=i8(kind))
            for name, level, kind in updates
        ),
        validate_only=validate_only,
    )
    return cluster.result_of(request)


@pytest.mark.parametrize("kind", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_a_feature_goes_down_and_up_again(kind: int) -> None:
    cluster = Cluster()
    result = update(cluster, (NAME, 0, kind))
    assert result.records == (FeatureLevelRecord(name=NAME, feature_level=i16(0)),)
    assert answered(result).error_code is ErrorCode.none
    assert [feature_result.feature for feature_result in answered(result).results] == [NAME]
    cluster.apply(result)
    assert NAME not in finalized_levels(cluster.image)
    result = update(cluster, (NAME, 2, UPGRADE))
    assert result.records == (FeatureLevelRecord(name=NAME, feature_level=i16(2)),)


def test_the_present_level_is_no_change() -> None:
    assert update(Cluster(), (NAME, 2, UPGRADE)).records == ()


def test_what_is_only_validated_changes_nothing() -> None:
    result = update(Cluster(), (NAME, 1, SAFE_DOWNGRADE), validate_only=True)
    assert result.records == ()


@pytest.mark.parametrize(
    ("updates", "code"),
    [
        ([("unknown", 1, UPGRADE)], ErrorCode.invalid_update_version),
        ([(NAME, 3, UPGRADE)], ErrorCode.invalid_update_version),
        ([(NAME, -1, SAFE_DOWNGRADE)], ErrorCode.invalid_update_version),
        ([(NAME, 1, UPGRADE)], ErrorCode.invalid_update_version),
        ([(NAME, 1, 7)], ErrorCode.invalid_update_version),
        ([("eligible.leader.replicas.version", 0, 2)], ErrorCode.invalid_update_version),
        ([(NAME, 2, UPGRADE), (NAME, 2, UPGRADE)], ErrorCode.invalid_request),
        ([(NAME, 1, SAFE_DOWNGRADE), ("unknown", 1, 1)], ErrorCode.invalid_update_version),
    ],
)
def test_a_wrong_update_is_refused_as_a_whole(
    updates: list[tuple[str, int, int]], code: ErrorCode
) -> None:
    with pytest.raises(ApiError) as caught:
        update(Cluster(), *updates)
    assert caught.value.code is code


def test_a_downgrade_to_a_higher_level_is_refused() -> None:
    cluster = Cluster()
    cluster.apply(update(cluster, (NAME, 1, SAFE_DOWNGRADE)))
    with pytest.raises(ApiError) as caught:
        update(cluster, (NAME, 2, SAFE_DOWNGRADE))
    assert caught.value.code is ErrorCode.invalid_update_version


def test_every_broker_must_know_the_level() -> None:
    cluster = Cluster(brokers=0)
    known = Feature(name=NAME, min_supported_version=i16(0), max_supported_version=i16(1))
    cluster.register(1, features=(known,))
    cluster.apply(update(cluster, (NAME, 1, SAFE_DOWNGRADE)))
    with pytest.raises(ApiError) as caught:
        update(cluster, (NAME, 2, UPGRADE))
    assert caught.value.code is ErrorCode.invalid_update_version


@pytest.mark.parametrize(("name", "level"), [("metadata.version", 29), ("kraft.version", 0)])
@pytest.mark.parametrize("kind", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_what_the_log_depends_on_is_not_lowered(name: str, level: int, kind: int) -> None:
    with pytest.raises(ApiError, match="cannot be lowered") as refused:
        update(Cluster(), (name, level, kind))
    assert refused.value.code is ErrorCode.invalid_update_version
