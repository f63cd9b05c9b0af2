"""AllocateProducerIds (67): v0.

Allocates the next block of producer ids to a broker.
"""

from ottla.handlers.controller_calls import call_controller

handle = call_controller
