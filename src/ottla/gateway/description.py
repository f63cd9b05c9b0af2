"""Where the written description of the API (OpenAPI 3.1) is; tests compare it with the routes."""

from pathlib import Path
from typing import Final

DESCRIPTION: Final = Path(__file__).with_name("openapi.yaml")
