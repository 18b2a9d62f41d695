//! Which addresses an authorization flow may call: HTTPS only, and no private network unless the server is in one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::OAuthError;
use crate::transport::http::target::display_url;

/// The addresses that may be called for one server. Only the server's own address is trusted; all others come from metadata.
#[derive(Debug, Clone)]
pub(super) struct AddressPolicy {
    server_host: String,
    allows_loopback: bool,
    allows_private: bool,
}

/// The network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressScope {
    Public,
    Private,
    Loopback,
    /// Link-local (cloud metadata), multicast, unspecified, reserved.
    Forbidden,
}

impl AddressPolicy {
    pub(super) fn new(server: &Url) -> Self {
        let server_scope = server.host().map(|host| host_scope(&host));
        Self {
            server_host: normalize_host(server.host_str().unwrap_or_default()),
            allows_loopback: server_scope == Some(Some(AddressScope::Loopback)),
            allows_private: server_scope == Some(Some(AddressScope::Private)),
        }
    }

    /// Checks a URL without resolving its host.
    pub(super) fn check(&self, url: &Url) -> Result<(), OAuthError> {
        let refused = |reason| Err(OAuthError::Address { url: display_url(url), reason });
        let Some(host) = url.host() else { return refused("the URL has no host") };
        if !url.username().is_empty() || url.password().is_some() {
            return refused("the URL contains user information");
        }
        let address_scope = host_scope(&host);
        match url.scheme() {
            "https" => {}
            "http" if self.allows_loopback && address_scope == Some(AddressScope::Loopback) => {}
            "http" => return refused("plain HTTP is allowed only on loopback"),
            _ => return refused("the scheme is neither https nor http"),
        }
        match address_scope {
            Some(address_scope) if !self.allows(url.host_str().unwrap_or_default(), address_scope) => {
                refused("the address is in a private network")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn allows_address(&self, host: &str, address: IpAddr) -> bool {
        self.allows(host, address_scope(address))
    }

    fn allows(&self, host: &str, address_scope: AddressScope) -> bool {
        normalize_host(host) == self.server_host
            || match address_scope {
                AddressScope::Public => true,
                AddressScope::Private => self.allows_private,
                AddressScope::Loopback => self.allows_loopback,
                AddressScope::Forbidden => false,
            }
    }
}

fn normalize_host(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// The scope of a host, as far as it is known without resolving.
fn host_scope(host: &Host<&str>) -> Option<AddressScope> {
    match host {
        Host::Ipv4(address) => Some(address_scope((*address).into())),
        Host::Ipv6(address) => Some(address_scope((*address).into())),
        Host::Domain(name) => {
            let name = normalize_host(name);
            (name == "localhost" || name.ends_with(".localhost")).then_some(AddressScope::Loopback)
        }
    }
}

pub(super) fn address_scope(address: IpAddr) -> AddressScope {
    match address {
        IpAddr::V4(address) => ipv4_scope(address),
        IpAddr::V6(address) => ipv6_scope(address),
    }
}

fn ipv4_scope(address: Ipv4Addr) -> AddressScope {
    let [first, second, ..] = address.octets();
    if address.is_loopback() {
        AddressScope::Loopback
    } else if address.is_private() || (first == 100 && (64..128).contains(&second)) {
        AddressScope::Private
    } else if first == 0
        || first >= 224
        || address.is_link_local()
        || (first == 198 && matches!(second, 18 | 19))
    {
        AddressScope::Forbidden
    } else {
        AddressScope::Public
    }
}

fn ipv6_scope(address: Ipv6Addr) -> AddressScope {
    let [first, second, third, fourth, fifth, sixth, seventh, eighth] = address.segments();
    let [a, b] = seventh.to_be_bytes();
    let [c, d] = eighth.to_be_bytes();
    let embedded = Ipv4Addr::new(a, b, c, d);
    match [first, second, third, fourth, fifth, sixth] {
        _ if address.is_loopback() => AddressScope::Loopback,
        _ if address.is_unspecified() => AddressScope::Forbidden,
        // IPv4 addresses in IPv6: mapped, compatible, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => ipv4_scope(embedded),
        [0x2002, ..] => {
            let ([a, b], [c, d]) = (second.to_be_bytes(), third.to_be_bytes());
            ipv4_scope(Ipv4Addr::new(a, b, c, d))
        }
        // Teredo and local-use NAT64 hide their target.
        [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => AddressScope::Forbidden,
        _ if first & 0xfe00 == 0xfc00 => AddressScope::Private,
        _ if first & 0xffc0 == 0xfe80 || first >= 0xff00 => AddressScope::Forbidden,
        _ => AddressScope::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_the_right_scope() {
        for (address, expected) in [
            ("8.8.8.8", AddressScope::Public),
            ("10.1.2.3", AddressScope::Private),
            ("100.64.0.1", AddressScope::Private),
            ("192.168.0.1", AddressScope::Private),
            ("127.9.9.9", AddressScope::Loopback),
            ("169.254.169.254", AddressScope::Forbidden),
            ("0.0.0.0", AddressScope::Forbidden),
            ("0.1.2.3", AddressScope::Forbidden),
            ("224.0.0.1", AddressScope::Forbidden),
            ("255.255.255.255", AddressScope::Forbidden),
            ("198.18.0.1", AddressScope::Forbidden),
            ("2606:4700::1", AddressScope::Public),
            ("::1", AddressScope::Loopback),
            ("::", AddressScope::Forbidden),
            ("::ffff:127.0.0.1", AddressScope::Loopback),
            ("::ffff:169.254.169.254", AddressScope::Forbidden),
            ("::10.0.0.1", AddressScope::Private),
            ("64:ff9b::a00:1", AddressScope::Private),
            ("2002:7f00:1::", AddressScope::Loopback),
            ("2001::1", AddressScope::Forbidden),
            ("fd00::1", AddressScope::Private),
            ("fe80::1", AddressScope::Forbidden),
            ("ff02::1", AddressScope::Forbidden),
        ] {
            assert_eq!(address_scope(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn metadata_cannot_lead_into_a_private_network() {
        let check = |server: &str, url: &str| {
            let policy = AddressPolicy::new(&Url::parse(server).unwrap());
            policy.check(&Url::parse(url).unwrap()).is_ok()
        };
        for (server, url, expected) in [
            ("https://mcp.example.org/", "https://login.example.org/token", true),
            ("https://mcp.example.org/", "http://login.example.org/token", false),
            ("https://mcp.example.org/", "http://127.0.0.1/token", false),
            ("https://mcp.example.org/", "https://localhost/token", false),
            ("https://mcp.example.org/", "https://a.LOCALHOST./token", false),
            ("https://mcp.example.org/", "https://10.0.0.1/token", false),
            ("https://mcp.example.org/", "https://169.254.169.254/token", false),
            ("https://mcp.example.org/", "https://[::ffff:127.0.0.1]/token", false),
            ("https://mcp.example.org/", "https://0x7f.1/token", false),
            ("https://mcp.example.org/", "ftp://login.example.org/", false),
            ("https://mcp.example.org/", "https://mcp.example.org@evil.example.org/", false),
            ("https://10.0.0.1/", "https://10.0.0.2/token", true),
            ("http://127.0.0.1:3000/mcp", "http://localhost:4000/token", true),
            ("http://127.0.0.1:3000/mcp", "http://login.example.org/token", false),
            ("http://127.0.0.1:3000/mcp", "https://login.example.org/token", true),
        ] {
            assert_eq!(check(server, url), expected, "{server} {url}");
        }
    }

    #[test]
    fn resolved_addresses_are_checked() {
        let policy = AddressPolicy::new(&Url::parse("https://mcp.example.org/").unwrap());
        assert!(policy.allows_address("login.example.org", "8.8.8.8".parse().unwrap()));
        assert!(!policy.allows_address("rebound.example.org", "127.0.0.1".parse().unwrap()));
        assert!(!policy.allows_address("rebound.example.org", "10.0.0.1".parse().unwrap()));
        // The configured server itself.
        assert!(policy.allows_address("MCP.example.org.", "10.0.0.1".parse().unwrap()));
    }
}
