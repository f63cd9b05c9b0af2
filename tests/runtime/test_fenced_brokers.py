from types import SimpleNamespace
from uuid import UUID

import pytest
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i64

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    FENCE,
    UNFENCE,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from ottla.runtime.fenced_brokers import LISTED_MS, FencedBrokers


@pytest.fixture
def time() -> SimpleNamespace:
    return SimpleNamespace(now=0.0)


@pytest.fixture
def fenced(time: SimpleNamespace) -> FencedBrokers:
    return FencedBrokers(SimpleNamespace(monotonic_ms=lambda: time.now))


def change(broker_id: int, fenced: int) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=BrokerId(broker_id), broker_epoch=i64(0), fenced=i8(fenced)
    )


def registration(broker_id: int, *, fenced: bool = True) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=BrokerId(broker_id),
        incarnation_id=UUID(int=1),
        broker_epoch=i64(0),
        end_points=(),
        fenced=fenced,
    )


def image_of(*records: RegisterBrokerRecord) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.replay(record)
    return image


def test_a_broker_is_recent_for_a_while_after_it_was_fenced(
    time: SimpleNamespace, fenced: FencedBrokers
) -> None:
    image = MetadataImage()
    assert fenced.recent() == set()
    fenced.on_record(change(1, FENCE), image)
    time.now = 100.0
    fenced.on_record(change(2, FENCE), image)
    fenced.on_record(change(3, UNFENCE), image)
    assert fenced.recent() == {1, 2}
    time.now = LISTED_MS
    assert fenced.recent() == {2}


def test_whoever_is_fenced_in_an_image_may_have_been_fenced_just_now(
    time: SimpleNamespace, fenced: FencedBrokers
) -> None:
    fenced.load(image_of(registration(1, fenced=False), registration(2)))
    assert fenced.recent() == {2}
    time.now = LISTED_MS
    assert fenced.recent() == set()


def test_a_broker_that_starts_again_is_recent_until_it_has_caught_up(fenced: FencedBrokers) -> None:
    fenced.load(image_of(registration(1, fenced=False)))
    fenced.on_record(registration(1), MetadataImage())
    assert fenced.recent() == {1}


def test_a_broker_that_starts_for_the_first_time_is_not_recent(fenced: FencedBrokers) -> None:
    fenced.on_record(registration(1), MetadataImage())
    assert fenced.recent() == set()
    fenced.on_record(registration(1), MetadataImage())
    assert fenced.recent() == {1}
