"""Server-side assignors: who should own which partition."""
