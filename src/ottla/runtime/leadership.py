"""Who leads the quorum, and the controller machine while this node does.

The machine is created once the first record of the node's epoch is committed and this node's image
has everything before it. It is dropped when the node stops leading; waiting calls then fail with
NOT_CONTROLLER, and the callers look for the new leader.
"""

from asyncio import Future, Task
from collections.abc import Callable
from typing import Any

from ottla.controller.machine import ControllerMachine
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.raft.ready import RoleChange
from ottla.raft.states import Role
from ottla.runtime.machine_runtime import MachineRuntime, Operation
from ottla.runtime.metadata_applier import Applied, MetadataApplier
from ottla.runtime.raft_commit_log import RaftCommitLog
from ottla.runtime.raft_driver import RaftDriver
from ottla.runtime.supervisor import Supervisor

NewRuntime = Callable[[RaftCommitLog], MachineRuntime[ControllerMachine]]


class Leadership:
    """Belongs to the loop's thread."""

    def __init__(
        self,
        driver: RaftDriver,
        applier: MetadataApplier,
        new_runtime: NewRuntime,
        supervisor: Supervisor,
    ) -> None:
        self._driver = driver
        self._applier = applier
        self._new_runtime = new_runtime
        self._supervisor = supervisor
        self.leader_id: int | None = None  # Of the quorum.
        self._epoch = 0
        self._epoch_start_offset: int | None = None  # None unless it leads.
        self._log: RaftCommitLog | None = None
        self._runtime: MachineRuntime[ControllerMachine] | None = None
        self._loading: Task[None] | None = None
        # Done when there may be another leader or the machine is loaded; then it is replaced.
        self.changed: Future[None] = supervisor.loop.create_future()
        applier.listen(self._on_applied)

    @property
    def runtime(self) -> MachineRuntime[ControllerMachine] | None:
        """None while another node, or none, is the controller."""
        return None if self._loading is not None else self._runtime

    @property
    def is_here(self) -> bool:
        """Whether this node leads and its controller is ready."""
        return self.runtime is not None

    @property
    def address(self) -> Address | None:
        """The leader's address; None if that is this node."""
        if self.leader_id is None or self.leader_id == self._driver.identity.key.id:
            return None
        return self._driver.address_of(self.leader_id)

    def submit(self, operation: Operation[ControllerMachine, Any]) -> None:
        """Run an operation if the controller is here; a failure has no consequence."""
        runtime = self.runtime
        if runtime is not None:
            reply = runtime.submit(operation)
            reply.add_done_callback(lambda done: done.cancelled() or done.exception())

    def on_role_change(self, change: RoleChange) -> None:
        self.unload("another node is the controller, or will be")
        if change.role is Role.LEADER:
            self._epoch_start_offset = change.epoch_start_offset
        if (self.leader_id, self._epoch) != (change.leader_id, change.epoch):
            self.leader_id, self._epoch = change.leader_id, change.epoch
            self._signal()

    def unload(self, reason: str) -> None:
        self._epoch_start_offset = None
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None
        if self._runtime is not None:
            self._runtime.unload(ApiError(ErrorCode.not_controller, reason))
            self._runtime = self._log = None

    def _on_applied(self, _: Applied) -> None:
        if self._log is not None:
            self._log.on_applied()
        elif (
            self._epoch_start_offset is not None
            and self._applier.applied_offset > self._epoch_start_offset
        ):
            self._log = RaftCommitLog(self._driver, self._applier)
            self._runtime = self._new_runtime(self._log)
            self._loading = self._supervisor.start("controller", self._load(self._runtime))

    async def _load(self, runtime: MachineRuntime[ControllerMachine]) -> None:
        await runtime.load()
        self._loading = None
        self._signal()

    def _signal(self) -> None:
        changed, self.changed = self.changed, self._supervisor.loop.create_future()
        changed.set_result(None)
