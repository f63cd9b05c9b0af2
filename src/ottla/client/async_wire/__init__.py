"""An asyncio client at the level of the protocol: many callers share one cluster.

It shares errors, security and version selection with its blocking sibling `client.wire`.
"""
