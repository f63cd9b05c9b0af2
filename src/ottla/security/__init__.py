"""Authentication: principals and SASL exchanges. Pure: bytes in, bytes out."""
