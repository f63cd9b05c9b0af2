"""A controller machine as the tests of the controller drive it: no log, no clock, no threads."""

from dataclasses import replace
from itertools import count
from uuid import UUID

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Listener
from tests.kits.manual_timers import ManualTimers

from ottla.controller.config import (
    BROKER_KEYS,
    MIN_INSYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
from ottla.controller.effective_configs import ConfigRules
from ottla.controller.machine import ControllerMachine, ControllerSettings
from ottla.controller.operations import OPERATIONS, At
from ottla.protocol.config import ConfigKey, ConfigSchema, ConfigType, at_least, each_of

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
TOPIC_SCHEMA = ConfigSchema(
    (RETENTION_MS, CLEANUP_POLICY, MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE)
)
BROKER_SCHEMA = ConfigSchema(
    (
        *BROKER_KEYS,
        replace(MIN_INSYNC_REPLICAS, dynamic=True),
        replace(UNCLEAN_LEADER_ELECTION_ENABLE, dynamic=True),
        ConfigKey("node.id", ConfigType.INT, 1, "The id."),
        INTERNAL_FACTOR,
        ConfigKey("log.retention.ms", ConfigType.LONG, 1000, "How long.", dynamic=True),
        ConfigKey(
            "log.cleanup.policy", ConfigType.LIST, ("delete",), "What happens.", dynamic=True
        ),
    )
)


def topic_defaults(broker):
    return {key.name: broker[key.synonym] for key in TOPIC_SCHEMA if key.synonym in broker}


def config_rules(**static):
    return ConfigRules(
        TOPIC_SCHEMA,
        BROKER_SCHEMA,
        BROKER_SCHEMA.parse({name.replace("_", "."): value for name, value in static.items()}),
        topic_defaults,
    )


class Cluster:
    """Topic ids count up from 1 and placement starts at the first broker."""

    def __init__(self, brokers=1, racks=(), **static):
        self.now_ms = 0
        self.records = []
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

    def _new_machine(self):
        self.timers = ManualTimers()
        self.machine = ControllerMachine(self.settings, self.timers)

    def reload(self):
        """Another controller takes over."""
        self._new_machine()
        for record in self.records:
            self.machine.replay(record, self.now_ms)
        self.machine.on_loaded(self.now_ms)

    def advance(self, milliseconds):
        """Time passes; what is due happens when it is due."""
        end_ms = self.now_ms + milliseconds
        while (due := self.timers.pop_due(end_ms)) is not None:
            self.now_ms, expiry = max(self.now_ms, due[0]), due[1]
            self.apply(expiry(self.now_ms))
        self.now_ms = end_ms

    def pause(self, milliseconds):
        """Time passes, and nothing happens before its end."""
        self.now_ms += milliseconds
        self.advance(0)

    @property
    def image(self):
        return self.machine.image

    def apply(self, result):
        """Replay what the runtime would have appended; gives the response."""
        self.replay(*result.records)
        for completion in result.completions:
            completion.deferred.settle(completion.outcome)
        return result.response

    def call(self, request, caller=None):
        return self.apply(self.result_of(request, caller))

    def result_of(self, request, caller=None):
        """Of the operation that is registered for the request."""
        at = At(self.now_ms, len(self.records), caller)
        return OPERATIONS[request.__api_key__].method(self.machine, at)(request)

    def replay(self, *records):
        for record in records:
            self.machine.replay(record, self.now_ms)
        self.records.extend(records)

    def register(
        self, broker_id, incarnation=None, rack=None, cluster_id=CLUSTER_ID, log_dirs=(), **fields
    ):
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=cluster_id,
            incarnation_id=UUID(int=incarnation or 100 + broker_id),
            listeners=(
                Listener(
                    name="PLAINTEXT", host="localhost", port=9090 + broker_id, security_protocol=0
                ),
            ),
            rack=rack,
            log_dirs=tuple(UUID(int=number) for number in log_dirs),
            **({"features": ()} | fields),
        )
        return self.call(request)

    def heartbeat(self, broker_id, **fields):
        return self.apply(self.heartbeat_result(broker_id, **fields))

    def heartbeat_result(self, broker_id, **fields):
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

    def expire_session(self, broker_id):
        _, expiry = self.timers.deadlines.pop(f"broker-session-{broker_id}")
        return self.apply(expiry(self.now_ms))
