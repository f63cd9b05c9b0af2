"""UnregisterBroker (64): v0.

A stopped broker leaves the cluster permanently.
"""

from ottla.handlers.controller_calls import call_controller_with
from ottla.security.acls import Operation

handle = call_controller_with(Operation.ALTER)
