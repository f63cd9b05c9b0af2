"""Real nodes inside the process that tests them."""
