"""A client on its own machine, across restarts."""

from asyncio import Task
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from ottla.protocol.addresses import Address
from ottla.testing.simulator.clients.client import Client
from ottla.testing.simulator.host import Host

if TYPE_CHECKING:
    from ottla.testing.simulator.network import Network

Works = Sequence[Coroutine[Any, Any, None]]
Work = Callable[[Client], Works]


class SimulatedClient:
    """`work` is what each life begins; `mortal` says that it may be killed and replaced."""

    def __init__(
        self,
        network: "Network",
        name: str,
        bootstrap: Sequence[Address],
        work: Work,
        *,
        mortal: bool = False,
    ) -> None:
        self.name = name
        self.mortal = mortal
        self.lives: list[Client] = []
        self._network = network
        self._bootstrap = bootstrap
        self._work = work
        self._working: dict[Task[None], Client] = {}
        self._stopping = False

    @property
    def host(self) -> Host:
        """Of its newest life."""
        return self.lives[-1].host

    @property
    def is_working(self) -> bool:
        return bool(self._working)

    def start(self) -> None:
        """A new life; earlier ones that go on do not know of it."""
        name = f"{self.name}.{len(self.lives)}" if self.lives else self.name
        host = Host(name, self._network)
        host.start_process()
        client = Client(host, self._bootstrap)
        client.stopping = self._stopping
        self.lives.append(client)
        for work in self._work(client):
            task = client.process.create_task(work)
            self._working[task] = client
            task.add_done_callback(self._on_done)

    def stop(self) -> None:
        """It ends when what it has begun is done."""
        self._stopping = True
        for client in self.lives:
            client.stopping = True

    def kill(self) -> None:
        """Its newest life; another begins."""
        client = self.lives[-1]
        client.tell("is killed")
        client.host.kill()
        self._working = {
            task: owner for task, owner in self._working.items() if owner is not client
        }
        self.start()

    def supersede(self) -> Client:
        """Pause its newest life and begin another, as an orchestrator that thinks it dead does."""
        client = self.lives[-1]
        client.tell("is paused and superseded")
        client.process.pause()
        client.superseded = True
        self.start()
        return client

    def _on_done(self, task: "Task[None]") -> None:
        if self._working.pop(task, None) is not None and (error := task.exception()) is not None:
            self._network.scheduler.fail(error)
