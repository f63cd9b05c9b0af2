"""The wire: frames, codec, error codes, and the vocabulary shared by all packages."""

import ottla.protocol.kio_import  # noqa: F401  Before anybody imports kio.
