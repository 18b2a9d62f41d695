//! [`ProxyIdentity`]: the caller that a trusted proxy names in a header, such as after checking a client certificate.

use std::sync::Arc;

use toolyard_core::{AuthenticationError, CallerIdentity, Credentials, PROXY_ISSUER};

use super::address_range::AddressRange;

const MAX_SUBJECT_BYTES: usize = 256;
const MAX_GROUPS: usize = 256;

/// Which proxies may say who a caller is, and in which headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyIdentity {
    trusted: Vec<AddressRange>,
    subject_header: String,
    groups_header: Option<String>,
}

impl ProxyIdentity {
    /// Trusts proxies at these addresses. Names of headers are not case-sensitive.
    pub fn new(trusted: Vec<AddressRange>, subject_header: &str, groups_header: Option<&str>) -> Self {
        Self {
            trusted,
            subject_header: subject_header.to_ascii_lowercase(),
            groups_header: groups_header.map(str::to_ascii_lowercase),
        }
    }

    /// The caller that the proxy names. Headers of other addresses do not count.
    pub(crate) fn identify(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Arc<CallerIdentity>, AuthenticationError> {
        if !self.trusted.iter().any(|range| range.contains(credentials.client_address)) {
            return Err(AuthenticationError::Missing);
        }
        let subject =
            (credentials.header)(&self.subject_header).map(str::trim).ok_or(AuthenticationError::Missing)?;
        if subject.is_empty() || subject.len() > MAX_SUBJECT_BYTES || subject.chars().any(char::is_control) {
            return Err(AuthenticationError::Invalid("the proxy sent an invalid name of the caller"));
        }
        let mut identity = CallerIdentity::principal(PROXY_ISSUER, subject);
        let groups = self.groups_header.as_deref().and_then(|name| (credentials.header)(name));
        let groups = groups.unwrap_or_default().split(',').map(str::trim).filter(|group| !group.is_empty());
        identity.groups = groups.take(MAX_GROUPS).map(str::to_owned).collect();
        Ok(Arc::new(identity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identify(address: &str, headers: &[(&str, &str)]) -> Result<Arc<CallerIdentity>, AuthenticationError> {
        let proxy = ProxyIdentity::new(
            vec!["10.0.0.0/8".parse().unwrap()],
            "X-Forwarded-User",
            Some("X-Forwarded-Groups"),
        );
        let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let client_address = address.parse().unwrap();
        proxy.identify(Credentials { bearer: None, header: &header, client_address })
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
}
