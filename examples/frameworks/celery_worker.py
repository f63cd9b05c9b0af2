"""Celery on Ottla: failed tasks are retried, delayed tasks wait in the broker.

celery -A celery_worker worker     runs the tasks
python celery_worker.py            sends some
"""

import os

from celery import Celery

import ottla.integrations.kombu  # noqa: F401

server = os.environ.get("OTTLA_BOOTSTRAP_SERVER", "localhost:9092")
app = Celery("celery_worker", broker=f"ottla://{server}")
app.conf.task_acks_late = True  # Acknowledge when a task is done, not when it begins.
app.conf.task_ignore_result = True


@app.task(name="resize", bind=True, max_retries=3)
def resize(self, picture: str) -> None:
    if picture == "cloudy.png" and self.request.retries == 0:
        raise self.retry(countdown=1)
    print(f"resized {picture}, try {self.request.retries + 1}", flush=True)


if __name__ == "__main__":
    resize.delay("sunny.png")
    resize.delay("cloudy.png")
    resize.apply_async(("evening.png",), countdown=2)
