"""RemoveRaftVoter (81): v0.

Takes a voter out of the metadata quorum (KIP-853).
"""

from ottla.handlers.controller_calls import call_controller_with
from ottla.security.acls import Operation

handle = call_controller_with(Operation.ALTER)
