"""BrokerRegistration (62): v0-v4.

A broker joins the cluster, and gets the epoch that it sends with all later requests.

v2  log directories
v3  the epoch before a clean shutdown (KIP-966)
v4  a feature may start at level 0 (KIP-1022)
"""

from ottla.handlers.controller_calls import call_controller

handle = call_controller
