"""A blocking client at the level of the protocol, for moving record batches unchanged.

It fetches and produces whole batches, which table readers and writers decode and encode as columns.
Applications use the ordinary clients for everything else.
"""

import ottla.protocol  # noqa: F401  Before anybody imports kio.
