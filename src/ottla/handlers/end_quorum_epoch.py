"""EndQuorumEpoch (54): v0-v1.

The leader of the metadata quorum resigns, and names its preferred successors.

v1  directory ids and endpoints (KIP-853)
"""

from ottla.handlers.controller_calls import call_quorum

handle = call_quorum
