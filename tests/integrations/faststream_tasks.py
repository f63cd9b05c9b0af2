"""A FastStream service that workers run; TASKS_CLIENT chooses one of its clients."""

import asyncio
import os
from pathlib import Path

from faststream import AckPolicy, FastStream
from tests.integrations.faststream_brokers import new_broker
from tests.integrations.processes import Journal, wait_until

QUEUE = os.environ["TASKS_QUEUE"]
JOURNAL = Journal(Path(os.environ["TASKS_JOURNAL"]))

broker = new_broker(os.environ["TASKS_CLIENT"], os.environ["OTTLA_BOOTSTRAP_SERVER"])
app = FastStream(broker)


@broker.subscriber(
    QUEUE,
    group_id=QUEUE,
    auto_offset_reset="earliest",
    ack_policy=AckPolicy.NACK_ON_ERROR,
    session_timeout_ms=6_000,  # A broker's default minimum.
)
async def work(name: str) -> None:
    """The first run of the slow one does not finish."""
    JOURNAL.note("begun", name)
    if name == "slow":
        await asyncio.to_thread(wait_until, lambda: JOURNAL.count("begun", [name]) == 2, "a try")
    JOURNAL.note("done", name)
