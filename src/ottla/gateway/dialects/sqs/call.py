"""Who calls, and from where: what an operation needs to know beside its parameters."""

import re
from typing import NamedTuple

from ottla.gateway.dialects.sqs.arns import DEFAULT_REGION, queue_arn, queue_of_url, queue_url

# Of a signature of version 4, in the header or in the query.
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/[^/]+/([a-z0-9-]+)/sqs/")


class Call(NamedTuple):
    base_url: str  # What the caller reached the gateway at, such as http://localhost:8080
    request_id: str
    access_key: str = ""
    region: str = DEFAULT_REGION

    def url(self, queue: str) -> str:
        return queue_url(self.base_url, queue)

    def arn(self, queue: str) -> str:
        return queue_arn(self.region, queue)


def credential_of(authorization: str) -> tuple[str, str]:
    """The access key and the region that a signature names; the signature is not checked."""
    matched = _CREDENTIAL.search(authorization)
    return ("", DEFAULT_REGION) if matched is None else (matched[1], matched[2])


def queue_in(request: dict[str, str]) -> str:
    return queue_of_url(request["QueueUrl"])
