"""UpdateRaftVoter (82): v0.

A voter tells the leader of the metadata quorum its address and versions (KIP-853).
"""

from ottla.handlers.controller_calls import call_quorum

handle = call_quorum
