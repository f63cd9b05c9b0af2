"""Signs tokens, and publishes its keys like an issuer."""

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example.com"
AUDIENCE = "kafka"


class TokenIssuer:
    def __init__(self, kid: str = "one", algorithm: str = "ES256") -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.private: Any
        if algorithm.startswith("ES"):
            self.private = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = rsa.generate_private_key(public_exponent=65_537, key_size=2048)

    def jwk(self) -> dict[str, Any]:
        algorithm = ECAlgorithm if self.algorithm.startswith("ES") else RSAAlgorithm
        key = json.loads(algorithm.to_jwk(self.private.public_key()))
        return {**key, "kid": self.kid, "use": "sig", "alg": self.algorithm}

    def token(self, name: str = "ann", *, valid_s: float = 600, **claims: Any) -> str:
        now = time.time()
        payload = {
            "sub": name,
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": int(now),
            "exp": now + valid_s,
            **claims,
        }
        return jwt.encode(payload, self.private, self.algorithm, headers={"kid": self.kid})


def write_keys(path: Path, *issuers: TokenIssuer) -> str:
    """The URL of the file."""
    path.write_text(json.dumps({"keys": [issuer.jwk() for issuer in issuers]}))
    return path.as_uri()
