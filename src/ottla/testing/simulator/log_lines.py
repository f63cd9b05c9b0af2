"""What simulated processes log, as lines of the trace."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.storage.faulty_filesystem import PowerLoss
from ottla.testing.simulator.scheduler import Scheduler


class _TraceHandler(logging.Handler):
    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler

    def emit(self, record: logging.LogRecord) -> None:
        process = self._scheduler.running
        who = "simulator"
        if process is not None:
            who = process.host.name
            process.host.log_lines_count += 1
        self._scheduler.tell(who, f"[{record.levelname.lower()}] {record.getMessage()}")
        if record.exc_info is not None:
            self._on_exception(record.exc_info[1])

    def _on_exception(self, error: BaseException | None) -> None:
        """Ottla logs exceptions only where it did not expect them."""
        if error is not None and not isinstance(error, PowerLoss):
            self._scheduler.fail(error)


@contextmanager
def traced_logging(scheduler: Scheduler) -> Iterator[None]:
    logger = logging.getLogger("ottla")
    handler = _TraceHandler(scheduler)
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
