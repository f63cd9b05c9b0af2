"""A whole cluster in one thread, from one seed: the same seed gives the same run, to the last byte.

Nodes are real: their handlers, storage and machines run as they do in production. Only their
surroundings are simulated: time, the network, disks, threads and randomness.
"""
