"""Share group members over the wire, for many consumers on one event loop.

What several consumers wait for is fetched together; each delivery is settled by its holder.
"""
