"""APIs that clients of other products speak, over the same core."""
