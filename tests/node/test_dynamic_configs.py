from ottla.controller.effective_configs import ConfigRules, EffectiveConfigs
from ottla.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from ottla.controller.records import ConfigRecord
from ottla.node.config import BROKER_SCHEMA, TOPIC_SCHEMA
from ottla.node.dynamic_configs import DynamicConfigs
from ottla.replication.throttle import ReplicationThrottle
from ottla.runtime.clock import ManualClock
from ottla.storage.broker_config import topic_defaults
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.manager import LogManager

RATE = "leader.replication.throttled.rate"


class Kit:
    def __init__(self):
        rules = ConfigRules(TOPIC_SCHEMA, BROKER_SCHEMA, {}, topic_defaults)
        self.image = MetadataImage()
        self.logs = LogManager(("/a", "/b"), FaultyFilesystem(), lambda: 0)
        self.logs.start(1)
        self.throttle = ReplicationThrottle(1, ManualClock())
        configs = EffectiveConfigs(self.image, rules, 1)
        self.dynamic = DynamicConfigs(configs, self.logs, self.throttle)

    def set(self, name, value, broker="1", resource_type=BROKER_RESOURCE):
        record = ConfigRecord(
            resource_type=resource_type, resource_name=broker, name=name, value=value
        )
        self.image.replay(record)
        self.dynamic.on_record(record, self.image)

    @property
    def cordoned(self):
        return [info.cordoned for info in self.logs.directories()]


def test_directories_are_cordoned_by_their_path_or_all_at_once():
    kit = Kit()
    kit.set("cordoned.log.dirs", "/b")
    assert kit.cordoned == [False, True]
    kit.set("cordoned.log.dirs", "*")
    assert kit.cordoned == [True, True]
    kit.set("cordoned.log.dirs", None)
    assert kit.cordoned == [False, False]


def test_a_rate_holds_for_one_broker_or_for_all_and_goes_again():
    kit = Kit()
    kit.set(RATE, "1000")
    kit.throttle.leader.spend(2000)
    assert kit.throttle.leader.wait_ms > 0
    assert kit.throttle.follower.wait_ms == 0
    kit.set(RATE, None)
    kit.set(RATE, "1000", broker="2")
    assert kit.throttle.leader._rate > 10**18
    kit.set(RATE, "5000", broker="")
    assert kit.throttle.leader._rate == 5000


def test_configs_of_topics_change_nothing_here():
    kit = Kit()
    kit.set("retention.ms", "5", broker="orders", resource_type=TOPIC_RESOURCE)
    assert kit.cordoned == [False, False]
