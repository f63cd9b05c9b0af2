"""Competing workers over HTTP: each job goes to one worker, and to another if that one fails.

It needs no libraries and talks to the gateway at OTTLA_GATEWAY_URL:
`ottla serve --http 8080`.
"""

import json
import os
import threading
import urllib.request
from typing import Any

GATEWAY = os.environ.get("OTTLA_GATEWAY_URL", "http://localhost:8080")
QUEUE = "/queues/jobs/painters"  # The topic `jobs`, shared by the group `painters`.
JOBS = [f"paint wall {number}" for number in range(12)]

done: dict[str, str] = {}
tries: dict[str, int] = {}


def post(path: str, body: dict[str, Any]) -> Any:
    content, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(GATEWAY + path, content, headers)
    with urllib.request.urlopen(request) as response:
        return json.loads(response.read() or b"null")


def work(name: str) -> None:
    while len(done) < len(JOBS):
        for job in post(f"{QUEUE}:receive", {"max": 1, "wait": 1, "lock": 60})["deliveries"]:
            delivery = {"delivery": job["delivery"]}
            try:
                paint(job["value"])
            except RuntimeError as error:
                print(f"{name}: {job['value']} failed, {error}")
                post(f"{QUEUE}:nack", delivery)  # It is delivered again.
            else:
                post(f"{QUEUE}:ack", delivery)  # It is not delivered again.
                done[job["value"]] = name


def paint(job: str) -> None:
    tries[job] = tries.get(job, 0) + 1
    if job == "paint wall 7" and tries[job] == 1:
        raise RuntimeError("the paint is used up")


for job in JOBS:
    post("/publish", {"topic": "jobs", "message": job})
workers = [threading.Thread(target=work, args=(name,)) for name in ("anna", "ben", "cleo")]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(f"{len(done)} jobs done, {sum(tries.values())} tries")
