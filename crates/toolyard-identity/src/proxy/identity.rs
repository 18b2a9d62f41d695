//! [`ProxyIdentity`]: the caller that a trusted proxy names in a header, such as after checking a client certificate.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use toolyard_core::{AuthenticationError, CallerIdentity, Credentials, PROXY_ISSUER};

use super::address_range::AddressRange;
use crate::group_access::GroupAccess;

const MAX_SUBJECT_BYTES: usize = 256;
const MAX_GROUPS: usize = 256;

/// Which proxies may say who a caller is, and in which headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyIdentity {
    trusted: Vec<AddressRange>,
    subject_header: String,
    groups_header: Option<String>,
    group_access: GroupAccess,
}

impl ProxyIdentity {
    /// Trusts proxies at these addresses. Names of headers are not case-sensitive.
    pub fn new(trusted: Vec<AddressRange>, subject_header: &str, groups_header: Option<&str>) -> Self {
        Self {
            trusted,
            subject_header: subject_header.to_ascii_lowercase(),
            groups_header: groups_header.map(str::to_ascii_lowercase),
            group_access: GroupAccess::default(),
        }
    }

    /// Limits callers to what their groups may use.
    #[must_use]
    pub fn with_group_access(mut self, group_access: GroupAccess) -> Self {
        self.group_access = group_access;
        self
    }

    /// The caller that the proxy names. Headers of other addresses do not count.
    pub(crate) fn identify(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Arc<CallerIdentity>, AuthenticationError> {
        if !self.is_trusted(credentials.client_address) {
            return Err(AuthenticationError::Missing);
        }
        let invalid =
            |_| AuthenticationError::Invalid("the proxy sent a header that is repeated or not text");
        let subject = (credentials.header)(&self.subject_header).map_err(invalid)?;
        let subject = subject.map(str::trim).ok_or(AuthenticationError::Missing)?;
        if subject.is_empty() || subject.len() > MAX_SUBJECT_BYTES || subject.chars().any(char::is_control) {
            return Err(AuthenticationError::Invalid("the proxy sent an invalid name of the caller"));
        }
        let mut identity = CallerIdentity::principal(PROXY_ISSUER, subject);
        if let Some(name) = &self.groups_header {
            // A policy may forbid something to a group: groups that cannot be read must not count as none.
            identity.groups = read_groups((credentials.header)(name).map_err(invalid)?.unwrap_or_default())?;
        }
        self.group_access.limit(&mut identity);
        Ok(Arc::new(identity))
    }

    /// The address of the client: the last one in the header that is not a trusted proxy. A client can invent those before it.
    pub(crate) fn client_address(&self, connection: IpAddr, forwarded_for: &str) -> IpAddr {
        let mut client = connection;
        for address in forwarded_for.rsplit(',').map(str::trim) {
            let with_port = || address.parse::<SocketAddr>().map(|address| address.ip());
            match address.parse::<IpAddr>().or_else(|_| with_port()) {
                Ok(address) if self.is_trusted(client) => client = address,
                _ => break,
            }
        }
        client
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|range| range.contains(address))
    }
}

fn read_groups(header: &str) -> Result<Vec<String>, AuthenticationError> {
    let groups = header.split(',').map(str::trim).filter(|group| !group.is_empty());
    let groups: Vec<String> = groups.map(str::to_owned).collect();
    match groups.len() {
        0..=MAX_GROUPS => Ok(groups),
        _ => Err(AuthenticationError::Invalid("the proxy sent more than 256 groups")),
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::InvalidHeader;

    use super::*;

    fn proxy() -> ProxyIdentity {
        let trusted = vec!["10.0.0.0/8".parse().unwrap()];
        ProxyIdentity::new(trusted, "X-Forwarded-User", Some("X-Forwarded-Groups"))
    }

    fn identify(address: &str, headers: &[(&str, &str)]) -> Result<Arc<CallerIdentity>, AuthenticationError> {
        let header = |name: &str| {
            let values: Vec<&str> =
                headers.iter().filter(|(known, _)| *known == name).map(|(_, value)| *value).collect();
            match values.as_slice() {
                [] => Ok(None),
                [value] => Ok(Some(*value)),
                _ => Err(InvalidHeader),
            }
        };
        let client_address = address.parse().unwrap();
        proxy().identify(Credentials { bearer: None, header: &header, client_address })
    }

    #[test]
    fn the_client_is_the_last_address_before_trusted_proxies() {
        for (connection, forwarded_for, client) in [
            ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
            ("10.0.0.1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
            ("10.0.0.1", "invented,203.0.113.9:443", "203.0.113.9"),
            ("10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"),
            ("10.0.0.1", "10.0.0.3,10.0.0.2", "10.0.0.3"),
            ("10.0.0.1", "203.0.113.9, unknown", "10.0.0.1"),
            ("10.0.0.1", "", "10.0.0.1"),
            ("192.0.2.1", "203.0.113.9", "192.0.2.1"),
        ] {
            let found = proxy().client_address(connection.parse().unwrap(), forwarded_for);
            assert_eq!(found, client.parse::<IpAddr>().unwrap(), "{connection} {forwarded_for}");
        }
    }

    #[test]
    fn a_trusted_proxy_names_the_caller_and_its_groups() {
        let headers = [("x-forwarded-user", "ada"), ("x-forwarded-groups", "dev, ops,,")];
        let identity = identify("10.1.2.3", &headers).unwrap();
        assert_eq!((&*identity.issuer, &*identity.subject), (PROXY_ISSUER, "ada"));
        assert_eq!(identity.groups, ["dev", "ops"]);
    }

    #[test]
    fn headers_of_other_addresses_and_invalid_names_do_not_count() {
        let user = [("x-forwarded-user", "ada")];
        for address in ["11.0.0.1", "127.0.0.1", "::1"] {
            assert_eq!(identify(address, &user), Err(AuthenticationError::Missing), "{address}");
        }
        assert_eq!(identify("10.0.0.1", &[]), Err(AuthenticationError::Missing));
        for name in ["", " ", "a\u{85}b", &"x".repeat(257)] {
            let refused = identify("10.0.0.1", &[("x-forwarded-user", name)]);
            assert!(matches!(refused, Err(AuthenticationError::Invalid(_))), "{name}");
        }
    }
    #[test]
    fn groups_that_cannot_be_read_do_not_count_as_none() {
        let user = ("x-forwarded-user", "ada");
        let many: String = (0..257).map(|number| format!("group{number},")).collect();
        for groups in [
            &[("x-forwarded-groups", "guests"), ("x-forwarded-groups", "dev")][..],
            &[("x-forwarded-groups", many.as_str())],
        ] {
            let refused = identify("10.0.0.1", &[&[user], groups].concat());
            assert!(matches!(refused, Err(AuthenticationError::Invalid(_))), "{refused:?}");
        }
        let repeated = identify("10.0.0.1", &[user, ("x-forwarded-user", "eve")]);
        assert!(matches!(repeated, Err(AuthenticationError::Invalid(_))), "{repeated:?}");
        assert_eq!(identify("10.0.0.1", &[user]).unwrap().groups, Vec::<String>::new());
    }
}
