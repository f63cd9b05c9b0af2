"""Server-side assignors: which member should own which partition."""
