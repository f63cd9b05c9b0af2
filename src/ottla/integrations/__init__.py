"""Brokers and transports of task frameworks, each in a module and an extra of its own.

All of them take tasks from share groups: a task belongs to one worker until that acknowledges it,
and goes to another when its lock ends.
"""
