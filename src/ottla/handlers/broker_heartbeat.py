"""BrokerHeartbeat (63): v0-v2.

A broker reports that it is alive, how far it has read the metadata and whether it wants to stop.

v1  log directories that failed (KIP-858)
v2  log directories that take no new replicas (ignored; the controller reads the config)
"""

from ottla.handlers.controller_calls import call_controller

handle = call_controller
