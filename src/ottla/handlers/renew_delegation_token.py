"""RenewDelegationToken (39): v1-v2.

Extends the lifetime of a token (KIP-48).

v2  flexible
"""

from ottla.handlers.delegation_tokens import change_token

handle = change_token
