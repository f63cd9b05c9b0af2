"""ExpireDelegationToken (40): v1-v2.

Changes when a token expires, or ends it at once (KIP-48).

v2  flexible
"""

from ottla.handlers.delegation_tokens import change_token

handle = change_token
