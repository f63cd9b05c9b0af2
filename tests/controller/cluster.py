"""A controller machine for tests: no log, no clock, no threads."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Listener
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i16, u16
from tests.kits.manual_timers import ManualTimers

from ottla.controller.config import (
    BROKER_KEYS,
    MIN_INSYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
from ottla.controller.effective_configs import ConfigRules
from ottla.controller.image import MetadataImage
from ottla.controller.machine import ControllerMachine, ControllerSettings
from ottla.controller.mutations import Caller
from ottla.controller.operations import OPERATIONS, At
from ottla.controller.records import PartitionRecord
from ottla.machine.result import Deferred, Result
from ottla.protocol.config import ConfigKey, ConfigSchema, ConfigType, at_least, each_of

R = TypeVar("R")

CLUSTER_ID = "cluster"
SESSION_MS = 1500

INTERNAL_FACTOR = ConfigKey("internal.factor", ConfigType.INT, 3, "Its replicas.", dynamic=True)
RETENTION_MS = ConfigKey(
    "retention.ms", ConfigType.LONG, 1000, "How long.", at_least(-1), "log.retention.ms"
)
CLEANUP_POLICY = ConfigKey(
    "cleanup.policy",
    ConfigType.LIST,
    ("delete",),
    "What happens.",
    each_of("delete", "compact"),
    "log.cleanup.policy",
)
TOPIC_KEYS: tuple[ConfigKey[Any], ...] = (
    RETENTION_MS,
    CLEANUP_POLICY,
    MIN_INSYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
SERVER_KEYS: tuple[ConfigKey[Any], ...] = (
    *BROKER_KEYS,
    replace(MIN_INSYNC_REPLICAS, dynamic=True),
    replace(UNCLEAN_LEADER_ELECTION_ENABLE, dynamic=True),
    ConfigKey("node.id", ConfigType.INT, 1, "The id."),
    INTERNAL_FACTOR,
    ConfigKey("log.retention.ms", ConfigType.LONG, 1000, "How long.", dynamic=True),
    ConfigKey("log.cleanup.policy", ConfigType.LIST, ("delete",), "What happens.", dynamic=True),
)
TOPIC_SCHEMA = ConfigSchema(TOPIC_KEYS)
BROKER_SCHEMA = ConfigSchema(SERVER_KEYS)


def topic_defaults(broker: Mapping[str, object]) -> dict[str, object]:
    return {
        key.name: broker[key.synonym]
        for key in TOPIC_SCHEMA
        if key.synonym is not None and key.synonym in broker
    }


def config_rules(**static: Any) -> ConfigRules:
    return ConfigRules(
        TOPIC_SCHEMA,
        BROKER_SCHEMA,
        BROKER_SCHEMA.parse({name.replace("_", "."): value for name, value in static.items()}),
        topic_defaults,
    )


class Cluster:
    """Topic ids count up from 1 and placement starts at the first broker."""

    def __init__(self, brokers: int = 1, racks: Sequence[str] = (), **static: Any) -> None:
        self.now_ms = 0
        self.records: list[Any] = []
        self.records_before = 0  # For tests that check what is written after their setup.
        ids = count(1)
        self.settings = ControllerSettings(
            cluster_id=CLUSTER_ID,
            config_rules=config_rules(**{"broker_session_timeout_ms": SESSION_MS} | static),
            new_topic_id=lambda: UUID(int=next(ids)),
            placement_start=lambda _: 0,
            internal_factors={"__internal": INTERNAL_FACTOR},
        )
        self._new_machine()
        for broker_id in range(1, brokers + 1):
            self.register(broker_id, rack=racks[broker_id - 1] if racks else None)
            self.heartbeat(broker_id)

    def _new_machine(self) -> None:
        self.timers = ManualTimers()
        self.machine = ControllerMachine(self.settings, self.timers)

    def reload(self) -> None:
        """Another controller takes over."""
        self._new_machine()
        for record in self.records:
            self.machine.replay(record, self.now_ms)
        self.machine.on_loaded(self.now_ms)

    def advance(self, milliseconds: int) -> None:
        """Time passes; due timers fire on time."""
        end_ms = self.now_ms + milliseconds
        while (due := self.timers.pop_due(end_ms)) is not None:
            self.now_ms, expiry = max(self.now_ms, due[0]), due[1]
            self.apply(expiry(self.now_ms))
        self.now_ms = end_ms

    def pause(self, milliseconds: int) -> None:
        """Time passes, and nothing fires until the end."""
        self.now_ms += milliseconds
        self.advance(0)

    @property
    def image(self) -> MetadataImage:
        return self.machine.image

    def partition(self, topic: str, index: int) -> PartitionRecord:
        partition = self.image.partition(topic, index)
        assert partition is not None, f"there is no partition {topic}-{index}"
        return partition

    def apply(self, result: Result[Any]) -> Any:
        """Replays what the runtime would append; returns the response."""
        self.replay(*result.records)
        for completion in result.completions:
            completion.deferred.settle(completion.outcome)
        return result.response

    def call(self, request: Any, caller: Caller | None = None) -> Any:
        return self.apply(self.result_of(request, caller))

    def result_of(self, request: Any, caller: Caller | None = None) -> Result[Any]:
        """The result of the operation registered for the request."""
        at = At(self.now_ms, len(self.records), caller)
        return OPERATIONS[request.__api_key__].method(self.machine, at)(request)

    def replay(self, *records: object) -> None:
        for record in records:
            self.machine.replay(record, self.now_ms)
        self.records.extend(records)

    def register(
        self,
        broker_id: int,
        incarnation: int | None = None,
        rack: str | None = None,
        cluster_id: str = CLUSTER_ID,
        log_dirs: Sequence[int] = (),
        **fields: Any,
    ) -> BrokerRegistrationResponse:
        request = BrokerRegistrationRequest(
            broker_id=BrokerId(broker_id),
            cluster_id=cluster_id,
            incarnation_id=UUID(int=incarnation or 100 + broker_id),
            listeners=(
                Listener(
                    name="PLAINTEXT",
                    host="localhost",
                    port=u16(9090 + broker_id),
                    security_protocol=i16(0),
                ),
            ),
            rack=rack,
            log_dirs=tuple(UUID(int=number) for number in log_dirs),
            **({"features": ()} | fields),
        )
        response: BrokerRegistrationResponse = self.call(request)
        return response

    def heartbeat(self, broker_id: int, **fields: Any) -> BrokerHeartbeatResponse:
        response: BrokerHeartbeatResponse = self.apply(self.heartbeat_result(broker_id, **fields))
        return response

    def heartbeat_result(self, broker_id: int, **fields: Any) -> Result[Any]:
        broker = self.image.brokers.get(broker_id)
        request = BrokerHeartbeatRequest(
            **{
                "broker_id": broker_id,
                "broker_epoch": broker.broker_epoch if broker else -1,
                "current_metadata_offset": len(self.records),
                "want_fence": False,
                "want_shut_down": False,
            }
            | fields
        )
        return self.result_of(request)

    def expire_session(self, broker_id: int) -> None:
        _, expiry = self.timers.deadlines.pop(f"broker-session-{broker_id}")
        self.apply(expiry(self.now_ms))


def answered(result: Result[R]) -> R:
    """The response, which must not be parked."""
    assert not isinstance(result.response, Deferred)
    return result.response
