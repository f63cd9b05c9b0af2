"""Rules as Kafka's documentation gives them, and names as Java writes them."""

import pytest

from ottla.security.errors import AuthenticationFailed
from ottla.security.principal_mapping import PrincipalMapper, distinguished_name

NAME = "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", NAME, NAME),
        ("", NAME, NAME),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,DEFAULT", NAME, "serviceuser"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, DEFAULT", "CN=x,OU=Other", "CN=x,OU=Other"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L", "CN=Adm,OU=Admin,O=x", "adm@admin"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", "O=x,cn=kate.b,C=y", "KATE.B"),
        (r"RULE:^CN=([^,]+)$/cost \$1\/$1/", "CN=a", "cost $1/a"),
        ("RULE:^CN=(a)|CN=(b)$/x$1$2/", "CN=b", "xb"),
    ],
)
def test_the_first_rule_that_fits_names_the_user(rules: str, name: str, user: str) -> None:
    assert PrincipalMapper(rules).user(name) == user


def test_a_name_that_no_rule_fits_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="no rule"):
        PrincipalMapper("RULE:^CN=(.*)$/$1/").user("O=x")


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("default", "neither DEFAULT nor"),
        ("RULE:^CN=(.*)$/$1", "neither DEFAULT nor"),
        ("RULE:^CN=(.*)$/$1/X", "neither DEFAULT nor"),
        ("DEFAULT DEFAULT", "neither DEFAULT nor"),
        ("RULE:^CN=(.*$/$1/", "no regular expression"),
        ("RULE:^CN=.*$/$1/", "group 1 of 0"),
    ],
)
def test_rules_that_cannot_be_used_are_refused(rules: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        PrincipalMapper(rules)


def test_a_name_is_written_from_its_most_special_part_on() -> None:
    subject = (
        (("countryName", "CZ"),),
        (("organizationName", 'A, "B"'),),
        (("commonName", "#x "),),
    )
    assert distinguished_name(subject) == 'CN=\\#x\\ ,O=A\\, \\"B\\",C=CZ'


def test_an_e_mail_address_is_written_as_java_does() -> None:
    subject = ((("commonName", "x"),), (("emailAddress", "a@b"),))
    assert distinguished_name(subject) == "1.2.840.113549.1.9.1=#1603614062,CN=x"


def test_parts_of_one_level_stay_together() -> None:
    assert distinguished_name(((("commonName", "x"), ("userId", "7")),)) == "CN=x+UID=7"
