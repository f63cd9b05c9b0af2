"""AddRaftVoter (80): v0-v1.

Turns a node that follows the metadata log into a voter of its quorum (KIP-853).

v1  an answer before the change is committed, on request (KIP-1186)
"""

from ottla.handlers.controller_calls import call_controller_with
from ottla.security.acls import Operation

handle = call_controller_with(Operation.ALTER)
