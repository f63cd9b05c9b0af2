"""Dramatiq on Ottla: failed tasks are retried, delayed tasks wait in the broker.

dramatiq dramatiq_worker --processes 1     runs the tasks
python dramatiq_worker.py                  sends some
"""

import os

import dramatiq
from dramatiq.middleware import CurrentMessage

from ottla.integrations.dramatiq import OttlaBroker

broker = OttlaBroker(os.environ.get("OTTLA_BOOTSTRAP_SERVER", "localhost:9092"))
broker.add_middleware(CurrentMessage())
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="resize", max_retries=3, min_backoff=1_000)
def resize(picture: str) -> None:
    retries = CurrentMessage.get_current_message().options.get("retries", 0)
    if picture == "cloudy.png" and retries == 0:
        raise OSError("too dark")
    print(f"resized {picture}, try {retries + 1}", flush=True)


if __name__ == "__main__":
    resize.send("sunny.png")
    resize.send("cloudy.png")
    resize.send_with_options(args=("evening.png",), delay=2_000)
    broker.close()
