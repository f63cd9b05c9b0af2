"""Vote (52): v0-v2.

A replica asks for a vote in the election of the metadata quorum's leader.

v1  directory ids (KIP-853)
v2  pre-vote (KIP-996)
"""

from ottla.handlers.controller_calls import call_quorum

handle = call_quorum
