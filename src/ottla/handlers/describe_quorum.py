"""DescribeQuorum (55): v0-v2.

The leader, the voters and the observers of the metadata quorum, and their log ends.

v1  times of the last fetch (KIP-836)
v2  directory ids and addresses (KIP-853)
"""

from ottla.handlers.controller_calls import call_controller_with
from ottla.security.acls import Operation

handle = call_controller_with(Operation.DESCRIBE)
