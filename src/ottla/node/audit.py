"""The audit log of a node: lines of the logger `ottla.audit`, and records for its topic."""

import json
import logging
from collections import deque
from typing import Any, Final

from ottla.controller.audited_changes import described_change
from ottla.controller.mutations import Caller
from ottla.network.audit_config import AUDIT_LOG_ENABLE
from ottla.network.security_config import AUTHORIZER_CLASS_NAME, SecurityConfig, SecurityProtocol
from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError
from ottla.records.builder import Record
from ottla.runtime.clock import Clock
from ottla.security.acls import Operation, ResourceType
from ottla.security.audit import Audit, Event, Kind, event_text
from ottla.security.authorizer import Access

logger = logging.getLogger("ottla.audit")

EVENTS_WAITING_MAX: Final = 10_000


class AuditLog(Audit):
    def __init__(self, clock: Clock, node_id: int) -> None:
        super().__init__(self._on_event, clock.monotonic_ms)
        self._clock = clock
        self._node_id = node_id
        self._waiting: deque[Record] | None = None  # None unless events go to the topic.
        self.dropped = 0  # Events that did not reach the topic.

    def queue_for_topic(self) -> deque[Record]:
        self._waiting = deque(maxlen=EVENTS_WAITING_MAX)
        return self._waiting

    def on_refused(
        self, access: Access, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        self.tell(
            Kind.ACCESS_REFUSED,
            access.principal,
            access.host,
            operation=operation.name,
            resource=f"{resource_type.name}:{name}",
        )

    def on_called(
        self, caller: Caller, request: Any, response: Any, error: ApiError | None
    ) -> None:
        described = described_change(request, response)
        if described is None:
            return
        action, names = described
        outcome = "done" if error is None else error.code.name.upper()
        self.tell(
            Kind.CHANGE,
            caller.principal,
            caller.host,
            action=action,
            of=names,
            outcome=outcome,
            client_id=caller.client_id,
        )

    def _on_event(self, event: Event) -> None:
        logger.info("%s", event_text(event), extra={"audit": event, "template": "audited"})
        waiting = self._waiting
        if waiting is None:
            return
        if len(waiting) == waiting.maxlen:
            self.dropped += 1
        now_ms = self._clock.now_ms()
        value = json.dumps({"time_ms": now_ms, "node": self._node_id, **event}).encode()
        waiting.append(Record(timestamp=now_ms, value=value))


def make_audit_log(
    values: ConfigValues, security: SecurityConfig, clock: Clock, node_id: int
) -> AuditLog | None:
    """None if there are no logins and no refusals: then there is no one to name."""
    is_locked = bool(values[AUTHORIZER_CLASS_NAME]) or any(
        listener.protocol is not SecurityProtocol.PLAINTEXT
        for listener in security.listeners.values()
    )
    return AuditLog(clock, node_id) if is_locked and values[AUDIT_LOG_ENABLE] else None
