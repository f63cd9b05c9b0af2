"""The transaction coordinator: which transactions there are, and how each of them ends."""
