"""boto3, set up as by a user."""

import itertools
import os
from typing import Any

import boto3
from botocore.config import Config

PATIENCE_S = 240

_numbers = itertools.count()


def make_client(url: str, **options: Any) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="eu-central-1",
        aws_access_key_id="alice",
        aws_secret_access_key="secret",
        config=Config(
            read_timeout=PATIENCE_S,
            retries={"total_max_attempts": 5, "mode": "standard"},
            **options,
        ),
    )


def queue_name(suffix: str = "") -> str:
    return f"sqs-{os.getpid()}-{next(_numbers)}{suffix}"


def receive(sqs: Any, url: str, count: int = 1, **options: Any) -> list[Any]:
    """Exactly this many messages, however long it takes."""
    options.setdefault("MessageSystemAttributeNames", ["All"])
    options.setdefault("MessageAttributeNames", ["All"])
    found: list[Any] = []
    while len(found) < count:
        answer = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=min(10, count - len(found)),
            WaitTimeSeconds=20,
            **options,
        )
        found += answer.get("Messages", [])
    return found
