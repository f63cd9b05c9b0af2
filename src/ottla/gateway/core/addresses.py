"""Which network addresses the gateway may call on someone's behalf.

A webhook's URL is chosen by whoever may create subscriptions, and the gateway can often reach more
than an outsider can: everything outside the public internet is refused, unless the operator allows
its network. The addresses checked here are the ones connected to; a name is resolved once for both.
"""

import ipaddress
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# IPv6 networks whose addresses embed an IPv4 address that a translator connects to.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")


def may_call(text: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether a connection to the address is allowed; False if it is not an address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    embedded = _embedded(address)
    if any(
        _contains(network, candidate) for network in allowed for candidate in (address, embedded)
    ):
        return True
    return _is_public(embedded) and (embedded.version == 4 or _is_public(address))


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """`10.0.0.0/8`, or one address. Raises ValueError for anything else."""
    return tuple(ipaddress.ip_network(text.strip(), strict=False) for text in texts)


def _embedded(address: Address) -> Address:
    """The IPv4 address that a connection to the IPv6 address ends at, if it embeds one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or address in _NAT64_LOCAL or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address in _SITE_LOCAL:
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def _contains(network: Network, address: Address) -> bool:
    return network.version == address.version and address in network
