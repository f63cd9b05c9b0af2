"""A promise of the consensus that a run has broken."""


class Violation(AssertionError):
    pass
