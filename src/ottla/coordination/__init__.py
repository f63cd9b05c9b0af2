"""Coordinators over partitions: which machine runs where, markers, share state, dead letters."""
