"""The quorum's leader, as this node knows it."""

from asyncio import Future

from ottla.protocol.addresses import Address
from ottla.runtime.active_controller import ActiveController
from ottla.runtime.raft_driver import RaftDriver


class Leadership:
    def __init__(self, driver: RaftDriver, controller: ActiveController) -> None:
        self._driver = driver
        self._controller = controller

    @property
    def changed(self) -> "Future[None]":
        """Done when there may be another leader, or its controller is ready."""
        return self._controller.changed

    @property
    def is_here(self) -> bool:
        """Whether this node leads and its controller is ready."""
        return self._controller.runtime is not None

    @property
    def leader_id(self) -> int | None:
        return self._controller.leader_id

    @property
    def address(self) -> Address | None:
        """The leader's address; None if that is this node."""
        leader_id = self.leader_id
        if leader_id is None or leader_id == self._driver.identity.key.id:
            return None
        return self._driver.address_of(leader_id)
