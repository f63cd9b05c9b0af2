"""AlterPartition (56): v2-v3.

A partition's leader reports to the controller who is in sync.

v2  topics by id
v3  the epochs of the brokers in the in-sync set (KIP-903)
"""

from ottla.handlers.controller_calls import call_controller

handle = call_controller
