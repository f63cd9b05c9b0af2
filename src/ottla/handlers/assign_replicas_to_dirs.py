"""AssignReplicasToDirs (73): v0.

A broker with several log directories reports to the controller where its replicas are (KIP-858).
"""

from ottla.handlers.controller_calls import call_controller

handle = call_controller
