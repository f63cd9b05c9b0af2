"""Keeps pages of other sites out.

A gateway often listens where only its own machine or network can reach it, but a browser there runs
pages from any site. Such a page cannot read answers (there is no CORS), yet it could send: a
record, or a subscription that forwards records elsewhere. Browsers name the page's origin in every
request that could do harm; other clients name none.
"""

from collections.abc import Mapping


def is_foreign(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the request comes from a page of another origin than the gateway's own."""
    origin = headers.get(b"origin")
    return origin is not None and origin.partition(b"://")[2] != headers.get(b"host")
