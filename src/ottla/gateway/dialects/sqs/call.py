"""The caller and its address: what an operation needs besides its parameters."""

import re
from typing import NamedTuple

from ottla.gateway.dialects.sqs.arns import ACCOUNT, DEFAULT_REGION, queue_of_url

# In a version 4 signature, in the header or the query.
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/[^/]+/([a-z0-9-]+)/sqs/")


class Call(NamedTuple):
    base_url: str  # Where the caller reached the gateway, such as http://localhost:8080
    request_id: str
    access_key: str = ""
    region: str = DEFAULT_REGION

    def url(self, queue: str) -> str:
        return f"{self.base_url}/{ACCOUNT}/{queue}"

    def arn(self, queue: str) -> str:
        return f"arn:aws:sqs:{self.region}:{ACCOUNT}:{queue}"


def credential_of(authorization: str) -> tuple[str, str]:
    """The access key and region named in a signature; does not verify the signature."""
    matched = _CREDENTIAL.search(authorization)
    return ("", DEFAULT_REGION) if matched is None else (matched[1], matched[2])


def queue_in(request: dict[str, str]) -> str:
    return queue_of_url(request["QueueUrl"])
