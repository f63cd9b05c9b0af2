"""Queue names in requests and answers: URLs and ARNs."""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

ACCOUNT: Final = "000000000000"
DEFAULT_REGION: Final = "us-east-1"

_REMEMBERED_MAX: Final = 4096
_ARN = re.compile(r"arn:[a-z-]+:sqs:[a-z0-9-]*:[0-9]*:([A-Za-z0-9._-]{1,249})")


@lru_cache(_REMEMBERED_MAX)
def queue_of_url(url: str) -> str:
    """The last path segment, whatever host, account and region precede it."""
    return urlsplit(url).path.rstrip("/").rpartition("/")[2] or url


def queue_of_arn(arn: str) -> str:
    matched = _ARN.fullmatch(arn)
    if matched is None:
        raise ValueError(f"{arn} is not the ARN of a queue")
    return matched[1]
