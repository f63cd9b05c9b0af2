"""The transaction coordinator: the transactions, and how each of them ends."""
