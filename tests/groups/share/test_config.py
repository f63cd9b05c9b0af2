import pytest

from ottla.groups.share.config import (
    SHARE_AUTO_OFFSET_RESET,
    ShareConfig,
    reset_duration_ms,
)
from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError


def test_values() -> None:
    broker = ConfigValues({"group.share.max.size": 3})
    group = ConfigValues(
        {"share.delivery.count.limit": 2, "share.isolation.level": "read_committed"}
    )

    assert ShareConfig.of(ConfigValues(), ConfigValues()) == ShareConfig()
    assert ShareConfig.of(group, broker) == ShareConfig(
        max_size=3, delivery_count_limit=2, committed_only=True
    )


@pytest.mark.parametrize(("attempts", "limit"), [(0, 7), (1, 1), (1_000, 1_000), (-1, 1 << 31)])
def test_how_often_a_record_is_delivered(attempts: int, limit: int) -> None:
    group = ConfigValues({"share.delivery.count.limit": 7, "share.delivery.attempts.max": attempts})

    assert ShareConfig.of(group, ConfigValues()).delivery_count_limit == limit


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("by_duration:PT1H30M", 5_400_000),
        ("by_duration:P2D", 172_800_000),
        ("by_duration:P1DT0.5S", 86_400_500),
    ],
)
def test_a_group_can_begin_some_time_ago(text: str, duration_ms: int) -> None:
    assert reset_duration_ms(text) == duration_ms
    assert SHARE_AUTO_OFFSET_RESET.parse(text) == text


@pytest.mark.parametrize("text", ["by_duration:P", "by_duration:PT", "by_duration:1h", "none", ""])
def test_no_offset_to_begin_at(text: str) -> None:
    with pytest.raises(ApiError):
        SHARE_AUTO_OFFSET_RESET.parse(text)
