"""BeginQuorumEpoch (53): v0-v1.

The leader of the metadata quorum announces itself to a voter that does not fetch.

v1  directory ids and endpoints (KIP-853)
"""

from ottla.handlers.controller_calls import call_quorum

handle = call_quorum
