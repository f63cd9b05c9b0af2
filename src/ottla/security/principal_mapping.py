"""`ssl.principal.mapping.rules`: from a certificate name to a user name (KIP-371).

A rule is DEFAULT, which takes the name unchanged, or `RULE:pattern/replacement/`, optionally
followed by L or U for lower or upper case. The first whose pattern matches the whole name applies.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ottla.security.errors import AuthenticationFailed

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*"
)
_GROUP: Final = re.compile(r"\$(\d)|\\(.)")
_CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}

# `ssl`'s names of the name parts that have a short name in RFC 2253.
_SHORT_NAMES: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_EMAIL_OID: Final = "1.2.840.113549.1.9.1"  # What Java writes for it, with its value in hex.
_IA5_STRING: Final = 0x16

RelativeName = Sequence[tuple[str, str]]


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None  # None: any name, unchanged.
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        match = self.pattern.fullmatch(name)
        if match is None:
            return None

        def group(reference: re.Match[str]) -> str:
            number, escaped = reference.groups()
            return escaped if number is None else match[int(number)] or ""

        return _CASES[self.case](_GROUP.sub(group, self.replacement))


class PrincipalMapper:
    def __init__(self, rules: str) -> None:
        """ValueError for invalid rules."""
        self._rules = _parse(rules)

    def user(self, name: str) -> str:
        """AuthenticationFailed if no rule matches."""
        for rule in self._rules:
            user = rule.apply(name)
            if user:
                return user
        raise AuthenticationFailed(f"no rule of ssl.principal.mapping.rules fits {name}")


def _parse(text: str) -> list[_Rule]:
    rules = []
    position = 0
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise ValueError(
                f"{text[position:]!r} is neither DEFAULT nor RULE:pattern/replacement/"
            )
        rules.append(_rule(match))
        position = match.end() + 1
    return rules or [_Rule(None, "", "")]


def _rule(match: re.Match[str]) -> _Rule:
    if match["default"]:
        return _Rule(None, "", "")
    try:
        pattern = re.compile(match["pattern"])
    except re.error as error:
        raise ValueError(f"{match['pattern']!r} is no regular expression: {error}") from None
    replacement = match["replacement"]
    for number, _ in _GROUP.findall(replacement):
        if number and int(number) > pattern.groups:
            raise ValueError(f"{replacement!r} names group {number} of {pattern.groups}")
    return _Rule(pattern, replacement, match["case"])


def distinguished_name(subject: Sequence[RelativeName]) -> str:
    """Of a certificate's subject, as `ssl` returns it: RFC 2253, as Java formats it."""
    return ",".join(
        "+".join(_part(kind, value) for kind, value in relative) for relative in reversed(subject)
    )


def _part(kind: str, value: str) -> str:
    if kind == "emailAddress":
        data = value.encode()
        return f"{_EMAIL_OID}=#{_IA5_STRING:02x}{len(data):02x}{data.hex()}"
    return f"{_SHORT_NAMES.get(kind, kind)}={_escaped(value)}"


def _escaped(value: str) -> str:
    text = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    if text.startswith((" ", "#")):
        text = f"\\{text}"
    if text.endswith(" ") and len(text) > 1:
        text = f"{text[:-1]}\\ "
    return text
