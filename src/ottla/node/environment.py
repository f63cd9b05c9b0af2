"""The world that a node lives in: its disk, its time, its chance, its threads, its sockets.

Nothing below `node` has another source of these, so that a simulator which replaces them runs the
same node again from the same seed. The event loop is the one in which the node is made.
"""

import random
import socket
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from uuid import UUID, uuid4

from ottla.protocol.entities import entity
from ottla.runtime.clock import Clock, SystemClock
from ottla.storage.filesystem import Filesystem
from ottla.storage.local_filesystem import LocalFilesystem

DISK_THREADS = 8
QUORUM_THREADS = 2
LOGIN_THREADS = 2


@entity
class Environment:
    """Of one life of one node: the executors are shut down when the node stops."""

    filesystem: Filesystem
    clock: Clock
    random: random.Random
    new_uuid: Callable[[], UUID]
    executor: Executor  # For what waits for the disk.
    # For syncs of the metadata log and of the quorum's state: whoever waits for those is soon taken
    # for dead, and must not stand in a queue behind the syncs of a thousand partitions.
    quorum_executor: Executor
    # For logins that hash a password or check a signature: they take neither the event loop nor the
    # threads of the disk, and do not stand in a queue behind syncs.
    login_executor: Executor
    new_threads: Callable[[int, str], Executor]  # Count and name; one job divides its work.
    new_socket: Callable[[socket.AddressFamily], socket.socket]  # For TCP.
    host_name: str

    def shut_down(self) -> None:
        """Returns when no thread works any more."""
        self.quorum_executor.shutdown()
        self.login_executor.shutdown()
        self.executor.shutdown()

    @staticmethod
    def real() -> "Environment":
        return Environment(
            filesystem=LocalFilesystem(),
            clock=SystemClock(),
            random=random.Random(),
            new_uuid=uuid4,
            executor=ThreadPoolExecutor(DISK_THREADS, "ottla-disk"),
            quorum_executor=ThreadPoolExecutor(QUORUM_THREADS, "ottla-quorum"),
            login_executor=ThreadPoolExecutor(LOGIN_THREADS, "ottla-login"),
            new_threads=ThreadPoolExecutor,
            new_socket=socket.socket,
            host_name=socket.gethostname(),
        )
