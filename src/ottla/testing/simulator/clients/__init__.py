"""Clients that live in the simulation: they speak the wire protocol and never give up."""
