"""APIs spoken by clients of other products, over the same core."""
