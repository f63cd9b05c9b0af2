from types import SimpleNamespace
from uuid import UUID

import pytest

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    FENCE,
    UNFENCE,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from ottla.runtime.fenced_brokers import LISTED_MS, FencedBrokers


@pytest.fixture
def time():
    return SimpleNamespace(now=0.0)


@pytest.fixture
def fenced(time):
    return FencedBrokers(SimpleNamespace(monotonic_ms=lambda: time.now))


def change(broker_id, fenced):
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=0, fenced=fenced)


def registration(broker_id, *, fenced=True):
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=1),
        broker_epoch=0,
        end_points=(),
        fenced=fenced,
    )


def image_of(*records):
    image = MetadataImage()
    for record in records:
        image.replay(record)
    return image


def test_a_broker_is_recent_for_a_while_after_it_was_fenced(time, fenced):
    image = MetadataImage()
    assert fenced.recent() == set()
    fenced.on_record(change(1, FENCE), image)
    time.now = 100.0
    fenced.on_record(change(2, FENCE), image)
    fenced.on_record(change(3, UNFENCE), image)
    assert fenced.recent() == {1, 2}
    time.now = LISTED_MS
    assert fenced.recent() == {2}


def test_whoever_is_fenced_in_an_image_may_have_been_fenced_just_now(time, fenced):
    fenced.load(image_of(registration(1, fenced=False), registration(2)))
    assert fenced.recent() == {2}
    time.now = LISTED_MS
    assert fenced.recent() == set()


def test_a_broker_that_starts_again_is_recent_until_it_has_caught_up(fenced):
    fenced.load(image_of(registration(1, fenced=False)))
    fenced.on_record(registration(1), MetadataImage())
    assert fenced.recent() == {1}


def test_a_broker_that_starts_for_the_first_time_is_not_recent(fenced):
    fenced.on_record(registration(1), MetadataImage())
    assert fenced.recent() == set()
    fenced.on_record(registration(1), MetadataImage())
    assert fenced.recent() == {1}
