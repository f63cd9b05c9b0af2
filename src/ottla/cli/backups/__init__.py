"""`ottla backup`, `ottla restore` and `ottla migrate`, and what they share."""
