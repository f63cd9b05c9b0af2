"""ListPartitionReassignments (46): v0.

The ongoing reassignments: of the named partitions, or all.
"""

from ottla.handlers.controller_calls import call_controller_with
from ottla.security.acls import Operation

handle = call_controller_with(Operation.DESCRIBE)
