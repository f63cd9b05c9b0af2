"""The client in the protocol's own words, for asyncio: many callers share one cluster.

It has the errors, the security and the choice of versions of its blocking sibling `client.wire`.
"""
