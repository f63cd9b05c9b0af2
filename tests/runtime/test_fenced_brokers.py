from types import SimpleNamespace

from ottla.controller.image import MetadataImage
from ottla.controller.records import FENCE, UNFENCE, BrokerRegistrationChangeRecord
from ottla.runtime.fenced_brokers import LISTED_MS, FencedBrokers


def change(broker_id, fenced):
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=0, fenced=fenced)


def test_a_broker_is_recent_for_a_while_after_it_was_fenced():
    time = SimpleNamespace(now=0.0)
    fenced = FencedBrokers(SimpleNamespace(monotonic_ms=lambda: time.now))
    image = MetadataImage()
    assert fenced.recent() == set()
    fenced.on_record(change(1, FENCE), image)
    time.now = 100.0
    fenced.on_record(change(2, FENCE), image)
    fenced.on_record(change(3, UNFENCE), image)
    assert fenced.recent() == {1, 2}
    time.now = LISTED_MS
    assert fenced.recent() == {2}
    fenced.load(image)
    assert fenced.recent() == set()
