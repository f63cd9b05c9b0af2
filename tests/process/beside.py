"""A well-behaved client that must not be affected by what others do to the broker."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.broker_process import BrokerProcess
from tests.clients.requests import batch, fetch, fetched, produce, produced
from tests.clients.wire import Wire
from tests.process.stored import find_offset
from tests.process.topic_churn import create_topic

from ottla.protocol.errors import ErrorCode
from ottla.records.batch import read_header

TOPIC = "beside"
ROUNDS_MIN = 5


class ClientBeside:
    """Keeps writing a record and reading it back until the block ends."""

    def __init__(self, bootstrap: str) -> None:
        self.rounds = 0
        self._bootstrap = bootstrap
        self._ending = threading.Event()
        self._enough = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        with Wire(bootstrap) as wire:
            create_topic(wire, TOPIC)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._enough.wait()
        self._ending.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def await_rounds(self, count: int) -> None:
        """Wait until it was served that many more times."""
        target = self.rounds + count
        while self.rounds < target and self._thread.is_alive():
            self._thread.join(0.001)
        assert self._failure is None, self._failure

    def _run(self) -> None:
        try:
            with Wire(self._bootstrap) as wire:
                offset = find_offset(wire, TOPIC)
                while not self._ending.is_set():
                    self._round(wire, offset)
                    offset += 1
        except BaseException as error:
            self._failure = error
        finally:
            self._enough.set()

    def _round(self, wire: Wire, offset: int) -> None:
        answer = produced(wire.call(produce(TOPIC, batch(b"%d" % offset))))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.none, offset), answer
        found = fetched(wire.call(fetch(TOPIC, offset)))
        assert found.error_code == ErrorCode.none, found
        assert read_header(found.records).base_offset == offset
        self.rounds += 1
        if self.rounds >= ROUNDS_MIN:
            self._enough.set()


def resident_bytes(broker: BrokerProcess) -> int:
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the broker has no memory")


def open_files(broker: BrokerProcess) -> int:
    return len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))
