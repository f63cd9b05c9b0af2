"""Sends, receives and deletes messages in batches of ten, as an SQS client, on many connections.

It counts what was deleted in a given time: a server that stalls or fails has a low rate, and the
load still ends. Waiting for a number of messages could hang on one that the server silently lost.
"""

import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import cyclopts

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report

BATCH = 10
WAIT_SECONDS = 1  # For messages; others may have taken ours.
SILENCE_SECONDS_MAX = 120
_CREDENTIAL = "Credential=bench/20260101/us-east-1/sqs/aws4_request"
_AUTHORIZATION = f"AWS4-HMAC-SHA256 {_CREDENTIAL}, SignedHeaders=host, Signature=0"


class Client:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._http = HTTPConnection(parts.hostname, parts.port, timeout=SILENCE_SECONDS_MAX)
        self.failed_count = 0  # Calls, and entries of batches.

    def call(self, operation: str, **request: Any) -> Any:
        headers = {
            "X-Amz-Target": f"AmazonSQS.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": _AUTHORIZATION,
        }
        self._http.request("POST", "/", json.dumps(request), headers)
        answer = self._http.getresponse()
        body = answer.read()
        if answer.status >= 500:
            self.failed_count += 1
            return {}
        if answer.status != 200:
            raise LoadError(f"{operation}: {answer.status} {body[:500].decode()}")
        result = json.loads(body) if body else {}
        self.failed_count += len(result.get("Failed", ()))
        return result

    def close(self) -> None:
        self._http.close()


class Done(NamedTuple):
    deleted_count: int
    failed_count: int


def cycles(url: str, queue: str, value_size: int, until: float) -> Done:
    """Receives as many messages as were sent, whoever sent them, unless none are left."""
    client = Client(url)
    deleted_count = 0
    while time.perf_counter() < until:
        send(client, queue, value_size)
        left, count = BATCH, BATCH
        while left > 0 and count > 0:
            count = receive_and_delete(client, queue, left)
            left -= count
            if time.perf_counter() > until:
                break
            deleted_count += count
    client.close()
    return Done(deleted_count, client.failed_count)


def send(client: Client, queue: str, value_size: int) -> None:
    body = "x" * value_size
    entries = [{"Id": str(index), "MessageBody": body} for index in range(BATCH)]
    client.call("SendMessageBatch", QueueUrl=queue, Entries=entries)


def receive_and_delete(client: Client, queue: str, count_max: int) -> int:
    options = {"MaxNumberOfMessages": count_max, "WaitTimeSeconds": WAIT_SECONDS}
    found = client.call("ReceiveMessage", QueueUrl=queue, **options).get("Messages", [])
    if found:
        deletions = [
            {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
            for index, message in enumerate(found)
        ]
        client.call("DeleteMessageBatch", QueueUrl=queue, Entries=deletions)
    return len(found)


def main(
    *,
    url: str,
    seconds: float,
    warm_seconds: float = 0.5,
    connections: int = 16,
    value_size: int = 1_000,
) -> None:
    client = Client(url)
    queue = client.call("CreateQueue", QueueName=f"bench-{uuid.uuid4().hex}")["QueueUrl"]
    with ThreadPoolExecutor(connections) as pool:

        def run(length: float) -> Done:
            until = time.perf_counter() + length
            arguments = (url, queue, value_size, until)
            running = [pool.submit(cycles, *arguments) for _ in range(connections)]
            return Done(*map(sum, zip(*(each.result() for each in running), strict=True)))

        run(warm_seconds)  # For members and connections.
        done = run(seconds)
    client.call("DeleteQueue", QueueUrl=queue)
    client.close()
    report(
        messages_per_second=done.deleted_count / seconds,
        messages=done.deleted_count,
        failed=done.failed_count,
    )


if __name__ == "__main__":
    cyclopts.run(main)
