"""Keeps pages of other sites out.

A gateway often listens where only its own machine or network reaches it, but a browser there runs
the pages of any site. Such a page may not read answers (there is no CORS), yet it could send: a
record, or a subscription that has records sent elsewhere. Browsers name the page's origin in
everything that it could do harm with; other clients name none.
"""

from collections.abc import Mapping


def is_foreign(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a page of another origin than the gateway's own sends the request."""
    origin = headers.get(b"origin")
    return origin is not None and origin.partition(b"://")[2] != headers.get(b"host")
