"""The wire: frames, codec, error codes, and the vocabulary that every package shares."""
