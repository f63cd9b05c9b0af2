"""AlterPartitionReassignments (45): v0-v1.

Assigns other replicas to partitions, or cancels that (KIP-455).

v1  whether the number of replicas may change
"""

from ottla.handlers.controller_calls import call_controller_with
from ottla.security.acls import Operation

handle = call_controller_with(Operation.ALTER)
