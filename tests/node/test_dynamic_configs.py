import asyncio
from uuid import uuid4

from kio.static.primitive import i8
from tests.kits.manual_clock import ManualClock

from ottla.controller.effective_configs import ConfigRules, EffectiveConfigs
from ottla.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from ottla.controller.records import ConfigRecord
from ottla.network.config import NetworkConfig
from ottla.network.server import Server
from ottla.node.config import BROKER_SCHEMA, TOPIC_SCHEMA
from ottla.node.dynamic_configs import DynamicConfigs
from ottla.protocol.topics import TopicPartition
from ottla.replication.throttle import ReplicationThrottle
from ottla.storage.broker_config import topic_defaults
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.manager import LogManager

RATE = "leader.replication.throttled.rate"


class Kit:
    def __init__(self) -> None:
        rules = ConfigRules(TOPIC_SCHEMA, BROKER_SCHEMA, {}, topic_defaults)
        self.image = MetadataImage()
        self.logs = LogManager(("/a", "/b"), FaultyFilesystem(), lambda: 0)
        self.logs.start(1)
        self.throttle = ReplicationThrottle(1, ManualClock())
        configs = EffectiveConfigs(self.image, rules, 1)
        self.dynamic = DynamicConfigs(configs, self.logs, self.throttle, lambda _: None)

    def set(
        self,
        name: str,
        value: str | None,
        broker: str = "1",
        resource_type: i8 = BROKER_RESOURCE,
    ) -> None:
        record = ConfigRecord(
            resource_type=resource_type, resource_name=broker, name=name, value=value
        )
        self.image.replay(record)
        self.dynamic.on_record(record, self.image)

    @property
    def cordoned(self) -> list[bool]:
        return [info.cordoned for info in self.logs.directories()]


def test_directories_are_cordoned_by_their_path_or_all_at_once() -> None:
    kit = Kit()
    kit.set("cordoned.log.dirs", "/b")
    assert kit.cordoned == [False, True]
    kit.set("cordoned.log.dirs", "*")
    assert kit.cordoned == [True, True]
    kit.set("cordoned.log.dirs", None)
    assert kit.cordoned == [False, False]


def test_a_rate_holds_for_one_broker_or_for_all_and_goes_again() -> None:
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


def test_configs_of_topics_change_nothing_here() -> None:
    kit = Kit()
    kit.set("retention.ms", "5", broker="orders", resource_type=TOPIC_RESOURCE)
    assert kit.cordoned == [False, False]


def test_limits_of_connections_change_while_the_broker_runs() -> None:
    async def scenario() -> None:
        kit = Kit()
        server = Server(NetworkConfig(), lambda *_: None, monotonic_ms=lambda: 0.0)
        kit.dynamic.limit(server, 2)
        assert [server.limits.admit(address) for address in "aab"] == [
            None,
            None,
            "max.connections",
        ]
        kit.set("max.connections.per.ip", "1")
        server.limits.release("a")
        assert server.limits.admit("a") == "max.connections.per.ip"
        kit.set("max.connections.per.ip.overrides", "127.0.0.1:7")
        kit.set("max.connections", "1")
        assert server.limits.admit("b") == "max.connections"
        kit.set("max.connection.creation.rate", "5", broker="")
        assert server.connection_rates.bound == 5

    asyncio.run(scenario())


def test_producers_expire_by_what_is_set_now() -> None:
    kit = Kit()
    log = kit.logs.create(TopicPartition("t", 0), uuid4(), LogConfig())
    assert log.producers.expiration_ms == 86_400_000
    kit.set("producer.id.expiration.ms", "7")
    assert log.producers.expiration_ms == 7
    other = kit.logs.create(TopicPartition("t", 1), uuid4(), LogConfig())
    assert other.producers.expiration_ms == 7


def test_the_cleaner_takes_up_its_buffers_and_its_rate() -> None:
    kit = Kit()
    kit.set("log.cleaner.dedupe.buffer.size", str(2 << 20))
    kit.set("log.cleaner.io.max.bytes.per.second", "1000.0")
    assert kit.logs._cleaner.dedupe_buffer_size == 2 << 20
    assert kit.logs._throttle.bytes_per_second == 1000.0
