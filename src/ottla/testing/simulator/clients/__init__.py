"""Simulated clients: they speak the wire protocol and never give up."""
