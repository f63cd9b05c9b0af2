"""Sends, receives and deletes messages in batches of ten, as an SQS client, on many connections."""

import json
import threading
import time
import uuid
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import cyclopts

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report

BATCH = 10
SILENCE_SECONDS_MAX = 120
_CREDENTIAL = "Credential=bench/20260101/us-east-1/sqs/aws4_request"
_AUTHORIZATION = f"AWS4-HMAC-SHA256 {_CREDENTIAL}, SignedHeaders=host, Signature=0"


class Client:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._http = HTTPConnection(parts.hostname, parts.port, timeout=SILENCE_SECONDS_MAX)

    def call(self, operation: str, **request: Any) -> Any:
        headers = {
            "X-Amz-Target": f"AmazonSQS.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": _AUTHORIZATION,
        }
        self._http.request("POST", "/", json.dumps(request), headers)
        answer = self._http.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise LoadError(f"{operation}: {answer.status} {body[:500].decode()}")
        return json.loads(body) if body else None

    def close(self) -> None:
        self._http.close()


def cycles(url: str, queue: str, count: int, value_size: int) -> None:
    """`count` batches are sent; as many messages are received and deleted, whoever sent them."""
    client = Client(url)
    body = "x" * value_size
    for _ in range(count):
        entries = [{"Id": str(index), "MessageBody": body} for index in range(BATCH)]
        client.call("SendMessageBatch", QueueUrl=queue, Entries=entries)
        left = BATCH
        while left > 0:
            options = {"MaxNumberOfMessages": left, "WaitTimeSeconds": 5}
            found = client.call("ReceiveMessage", QueueUrl=queue, **options).get("Messages", [])
            if found:
                deletions = [
                    {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                    for index, message in enumerate(found)
                ]
                client.call("DeleteMessageBatch", QueueUrl=queue, Entries=deletions)
            left -= len(found)
    client.close()


def main(*, url: str, count: int, connections: int = 16, value_size: int = 1_000) -> None:
    """`count` messages in all."""
    client = Client(url)
    queue = client.call("CreateQueue", QueueName=f"bench-{uuid.uuid4().hex}")["QueueUrl"]
    cycles(url, queue, 1, value_size)  # Members and connections are made.
    each = max(1, count // BATCH // connections)
    threads = [
        threading.Thread(target=cycles, args=(url, queue, each, value_size))
        for _ in range(connections)
    ]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    client.call("DeleteQueue", QueueUrl=queue)
    client.close()
    report(messages_per_second=each * connections * BATCH / seconds, seconds=seconds)


if __name__ == "__main__":
    cyclopts.run(main)
