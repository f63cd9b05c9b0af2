"""Brokers and transports for task frameworks, each with its own module and extra.

All of them take tasks from share groups: a task belongs to one worker until that worker
acknowledges it, and goes to another when its lock expires.
"""
