"""Choose the version of each API: the newest that both sides support.

Some APIs are held below their newest version:

Produce, EndTxn           before the second part of KIP-890, so that a transaction keeps its
                          producer epoch and another process that knows it can end it
AddPartitionsToTxn        the versions for clients; later ones are for brokers
OffsetCommit, OffsetFetch the versions that name topics instead of using ids
"""

from collections.abc import Mapping
from typing import Final

from ottla.client.wire.errors import Unreachable
from ottla.protocol.codec import api_versions_supported_by_codec

API_VERSIONS_VERSION: Final = 0  # The version of ApiVersions itself; every broker supports it.

_VERSION_MAX = {0: 11, 8: 9, 9: 9, 24: 3, 26: 4}

Versions = Mapping[int, tuple[int, int]]  # A broker's lowest and highest version, by API key.


def common_version(api_key: int, theirs: Versions) -> int | None:
    """None if there is no common version."""
    lowest, highest = _ours(api_key)
    their_lowest, their_highest = theirs.get(api_key, (0, -1))
    version = min(highest, their_highest)
    return None if version < max(lowest, their_lowest) else version


def version_to_speak(api_key: int, theirs: Versions, address: str) -> int:
    version = common_version(api_key, theirs)
    if version is None:
        lowest, highest = theirs.get(api_key, (0, -1))
        ours = _ours(api_key)
        raise Unreachable(
            f"broker {address}: it has versions {lowest}-{highest} of API {api_key},"
            f" this client {ours[0]}-{ours[1]}"
        )
    return version


def _ours(api_key: int) -> tuple[int, int]:
    lowest, highest = api_versions_supported_by_codec(api_key)
    return lowest, min(highest, _VERSION_MAX.get(api_key, highest))
