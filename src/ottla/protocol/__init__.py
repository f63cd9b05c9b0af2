"""The wire: frames, codec, error codes, and the vocabulary that every package shares."""

import ottla.protocol.kio_import  # noqa: F401  Before anybody imports kio.
