"""How a run fails, besides assertions in the simulated code."""


class Violation(AssertionError):
    """A guarantee was broken."""


class Stalled(AssertionError):
    """No guarantee was broken, but the cluster made no progress when it could."""
