"""FetchSnapshot (59): v0-v1.

A replica whose log ends before the leader's starts fetches a snapshot in parts (KIP-630).

v1  directory ids and endpoints (KIP-853)
"""

from ottla.handlers.controller_calls import call_quorum

handle = call_quorum
