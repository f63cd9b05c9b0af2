"""The ways a run fails, besides assertions in the core."""


class Violation(AssertionError):
    """A guarantee was broken."""


class Stalled(AssertionError):
    """Nothing was broken, but the cluster made no progress although it could."""
