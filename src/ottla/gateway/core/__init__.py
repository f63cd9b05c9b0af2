"""What the gateway does, without HTTP."""
