//! Which addresses an authorization flow may call: https only, and nothing inside the network unless the operator is there too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::OAuthError;
use crate::client::http_target::shown;

/// Which addresses may be called for one server. The server is the operator's word; every other address came from outside.
#[derive(Debug, Clone)]
pub(super) struct AddressPolicy {
    server_host: String,
    loopback: bool,
    private: bool,
}

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Public,
    Private,
    Loopback,
    /// Nowhere one wants to be sent: link-local (the metadata of clouds), multicast, unspecified, reserved.
    Never,
}

impl AddressPolicy {
    pub(super) fn new(server: &Url, private_network: bool) -> Self {
        let own = server.host().map(|host| literal_reach(&host));
        Self {
            server_host: plain_host(server.host_str().unwrap_or_default()),
            loopback: own == Some(Some(Reach::Loopback)),
            private: private_network || own == Some(Some(Reach::Private)),
        }
    }

    /// Whether an address may be called, as far as that is seen without asking for its name.
    pub(super) fn check(&self, url: &Url) -> Result<(), OAuthError> {
        let refused = |reason| Err(OAuthError::Address { url: shown(url), reason });
        let Some(host) = url.host() else { return refused("it names no machine") };
        if !url.username().is_empty() || url.password().is_some() {
            return refused("it has a user's name in it");
        }
        let reach = literal_reach(&host);
        match url.scheme() {
            "https" => {}
            "http" if self.loopback && reach == Some(Reach::Loopback) => {}
            "http" => return refused("it is not https"),
            _ => return refused("it is neither https nor http"),
        }
        match reach {
            Some(reach) if !self.allows(url.host_str().unwrap_or_default(), reach) => {
                refused("it is inside a network the server has no business in")
            }
            _ => Ok(()),
        }
    }

    /// Whether an address found for a name may be connected to.
    pub(super) fn allows_address(&self, host: &str, address: IpAddr) -> bool {
        self.allows(host, reach(address))
    }

    fn allows(&self, host: &str, reach: Reach) -> bool {
        plain_host(host) == self.server_host
            || match reach {
                Reach::Public => true,
                Reach::Private => self.private,
                Reach::Loopback => self.loopback,
                Reach::Never => false,
            }
    }
}

/// A host in the one form two of them are compared in.
fn plain_host(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// What can be told from a host without asking for its name.
fn literal_reach(host: &Host<&str>) -> Option<Reach> {
    match host {
        Host::Ipv4(address) => Some(reach((*address).into())),
        Host::Ipv6(address) => Some(reach((*address).into())),
        Host::Domain(name) => {
            let name = plain_host(name);
            (name == "localhost" || name.ends_with(".localhost")).then_some(Reach::Loopback)
        }
    }
}

/// Where an address leads.
pub(super) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let [first, second, ..] = address.octets();
    if address.is_loopback() {
        Reach::Loopback
    } else if address.is_private() || (first == 100 && (64..128).contains(&second)) {
        Reach::Private
    } else if first == 0
        || first >= 224
        || address.is_link_local()
        || (first == 198 && matches!(second, 18 | 19))
    {
        Reach::Never
    } else {
        Reach::Public
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let [first, second, third, fourth, fifth, sixth, seventh, eighth] = address.segments();
    let [a, b] = seventh.to_be_bytes();
    let [c, d] = eighth.to_be_bytes();
    let last = Ipv4Addr::new(a, b, c, d);
    match [first, second, third, fourth, fifth, sixth] {
        _ if address.is_loopback() => Reach::Loopback,
        _ if address.is_unspecified() => Reach::Never,
        // An IPv4 address in other clothes: mapped, compatible, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => reach_v4(last),
        [0x2002, ..] => {
            let ([a, b], [c, d]) = (second.to_be_bytes(), third.to_be_bytes());
            reach_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Teredo and NAT64 of local use hide where they lead.
        [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => Reach::Never,
        _ if first & 0xfe00 == 0xfc00 => Reach::Private,
        _ if first & 0xffc0 == 0xfe80 || first >= 0xff00 => Reach::Never,
        _ => Reach::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_where_addresses_lead() {
        for (address, expected) in [
            ("8.8.8.8", Reach::Public),
            ("10.1.2.3", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("192.168.0.1", Reach::Private),
            ("127.9.9.9", Reach::Loopback),
            ("169.254.169.254", Reach::Never),
            ("0.0.0.0", Reach::Never),
            ("0.1.2.3", Reach::Never),
            ("224.0.0.1", Reach::Never),
            ("255.255.255.255", Reach::Never),
            ("198.18.0.1", Reach::Never),
            ("2606:4700::1", Reach::Public),
            ("::1", Reach::Loopback),
            ("::", Reach::Never),
            ("::ffff:127.0.0.1", Reach::Loopback),
            ("::ffff:169.254.169.254", Reach::Never),
            ("::10.0.0.1", Reach::Private),
            ("64:ff9b::a00:1", Reach::Private),
            ("2002:7f00:1::", Reach::Loopback),
            ("2001::1", Reach::Never),
            ("fd00::1", Reach::Private),
            ("fe80::1", Reach::Never),
            ("ff02::1", Reach::Never),
        ] {
            assert_eq!(reach(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn lets_nobody_send_us_into_the_network() {
        let check = |server: &str, private, url: &str| {
            let policy = AddressPolicy::new(&Url::parse(server).unwrap(), private);
            policy.check(&Url::parse(url).unwrap()).is_ok()
        };
        for (server, private, url, expected) in [
            ("https://mcp.example.org/", false, "https://login.example.org/token", true),
            ("https://mcp.example.org/", false, "http://login.example.org/token", false),
            ("https://mcp.example.org/", false, "http://127.0.0.1/token", false),
            ("https://mcp.example.org/", false, "https://localhost/token", false),
            ("https://mcp.example.org/", false, "https://a.LOCALHOST./token", false),
            ("https://mcp.example.org/", false, "https://10.0.0.1/token", false),
            ("https://mcp.example.org/", true, "https://10.0.0.1/token", true),
            ("https://mcp.example.org/", true, "https://169.254.169.254/token", false),
            ("https://mcp.example.org/", true, "https://[::ffff:127.0.0.1]/token", false),
            ("https://mcp.example.org/", false, "https://0x7f.1/token", false),
            ("https://mcp.example.org/", false, "ftp://login.example.org/", false),
            ("https://mcp.example.org/", false, "https://mcp.example.org@evil.example.org/", false),
            ("https://10.0.0.1/", false, "https://10.0.0.2/token", true),
            ("http://127.0.0.1:3000/mcp", false, "http://localhost:4000/token", true),
            ("http://127.0.0.1:3000/mcp", false, "http://login.example.org/token", false),
            ("http://127.0.0.1:3000/mcp", false, "https://login.example.org/token", true),
        ] {
            assert_eq!(check(server, private, url), expected, "{server} {private} {url}");
        }
    }

    #[test]
    fn looks_behind_names() {
        let policy = AddressPolicy::new(&Url::parse("https://mcp.example.org/").unwrap(), false);
        assert!(policy.allows_address("login.example.org", "8.8.8.8".parse().unwrap()));
        assert!(!policy.allows_address("rebound.example.org", "127.0.0.1".parse().unwrap()));
        assert!(!policy.allows_address("rebound.example.org", "10.0.0.1".parse().unwrap()));
        // The operator named this one.
        assert!(policy.allows_address("MCP.example.org.", "10.0.0.1".parse().unwrap()));
    }
}
