"""The checksum of batches."""

import subprocess
import sys

import crc32c as package

from ottla.records.crc import crc32c

KNOWN = b"123456789", 0xE3069283  # RFC 3720, appendix B.4 has more.


def test_it_is_the_packages() -> None:
    content, checksum = KNOWN
    assert crc32c(content) == crc32c(memoryview(content)) == package.crc32c(content) == checksum


def test_it_comes_without_the_rest_of_the_package_and_leaves_that_usable() -> None:
    program = """
import sys
from ottla.records.crc import crc32c
assert "importlib.metadata" not in sys.modules
import crc32c as package
assert crc32c(b"abc") == package.crc32c(b"abc") != 0
"""
    subprocess.run([sys.executable, "-c", program], check=True)
