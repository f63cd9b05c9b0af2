"""A node's environment: its disk, its time, its randomness, its threads, its sockets.

Nothing below `node` has another source of these, so that a simulator which replaces them runs the
same node again from the same seed. The event loop is the one in which the node is created.
"""

import random
import socket
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final
from uuid import UUID, uuid4

from ottla.protocol.entities import entity
from ottla.runtime.clock import Clock, SystemClock
from ottla.storage.filesystem import Filesystem
from ottla.storage.local_filesystem import LocalFilesystem

DISK_THREADS = 8
QUORUM_THREADS = 2
LOGIN_THREADS = 2


_DASH: Final = 62  # In base64, as Kafka shows ids; six bits.


def random_uuid() -> UUID:
    """Like Kafka's: its base64 form has no leading dash, which commands take for an option."""
    while (uuid := uuid4()).int >> 122 == _DASH:
        continue
    return uuid


@entity
class Environment:
    """For one run of one node: the executors are shut down when the node stops."""

    filesystem: Filesystem
    clock: Clock
    random: random.Random
    new_uuid: Callable[[], UUID]
    executor: Executor  # For work that waits for the disk.
    # For syncs of the metadata log and the quorum state: a node that waits for those is soon
    # considered dead, so they must not queue behind the syncs of a thousand partitions.
    quorum_executor: Executor
    # For logins that hash a password or check a signature: they use neither the event loop nor the
    # disk threads, and do not queue behind syncs.
    login_executor: Executor
    new_threads: Callable[[int, str], Executor]  # Count and name; for the work of one job.
    new_socket: Callable[[socket.AddressFamily], socket.socket]  # For TCP.
    host_name: str

    def shut_down(self) -> None:
        """Returns when no thread is working any more."""
        self.quorum_executor.shutdown()
        self.login_executor.shutdown()
        self.executor.shutdown()

    @staticmethod
    def real() -> "Environment":
        return Environment(
            filesystem=LocalFilesystem(),
            clock=SystemClock(),
            random=random.Random(),
            new_uuid=random_uuid,
            executor=ThreadPoolExecutor(DISK_THREADS, "ottla-disk"),
            quorum_executor=ThreadPoolExecutor(QUORUM_THREADS, "ottla-quorum"),
            login_executor=ThreadPoolExecutor(LOGIN_THREADS, "ottla-login"),
            new_threads=ThreadPoolExecutor,
            new_socket=socket.socket,
            host_name=socket.gethostname(),
        )
