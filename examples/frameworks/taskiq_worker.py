"""Taskiq on Ottla: failed tasks are retried, delayed tasks wait in the broker.

taskiq worker taskiq_worker:broker     runs the tasks
python taskiq_worker.py                sends some
"""

import asyncio
import os
from typing import Annotated

from taskiq import Context, SmartRetryMiddleware, TaskiqDepends

from ottla.integrations.taskiq import OttlaBroker

broker = OttlaBroker(
    os.environ.get("OTTLA_BOOTSTRAP_SERVER", "localhost:9092"), queues=["pictures"]
).with_middlewares(SmartRetryMiddleware(default_retry_count=3, default_delay=1))


@broker.task("resize", retry_on_error=True)
async def resize(picture: str, context: Annotated[Context, TaskiqDepends()]) -> None:
    retries = int(context.message.labels.get("_retries", 0))
    if picture == "cloudy.png" and retries == 0:
        raise OSError("too dark")
    print(f"resized {picture}, try {retries + 1}", flush=True)


async def main() -> None:
    await broker.startup()
    await resize.kiq("sunny.png")
    await resize.kiq("cloudy.png")
    await resize.kicker().with_labels(delay=2).kiq("evening.png")
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
