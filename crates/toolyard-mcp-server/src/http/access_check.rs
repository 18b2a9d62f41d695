//! Checks the host, origin and credentials of a request.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use toolyard_core::{AuthenticationError, Authenticator, CallerIdentity, Credentials, InvalidHeader};

use crate::http::config::{Access, AccessRules};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccessError {
    /// The `Host` header names another server.
    ForbiddenHost,
    ForbiddenOrigin,
    MissingToken,
    InvalidToken,
    /// The authenticator refused the credentials; `challenge` is the value of `WWW-Authenticate`.
    Unauthenticated {
        error: AuthenticationError,
        challenge: Option<HeaderValue>,
    },
    /// The caller may not use the profile.
    ForbiddenProfile,
}

impl AccessError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::ForbiddenHost | Self::ForbiddenOrigin | Self::ForbiddenProfile => StatusCode::FORBIDDEN,
            Self::MissingToken | Self::InvalidToken => StatusCode::UNAUTHORIZED,
            Self::Unauthenticated { error, .. } => match error {
                AuthenticationError::InsufficientScope(_) => StatusCode::FORBIDDEN,
                AuthenticationError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::UNAUTHORIZED,
            },
        }
    }

    /// The value of `Retry-After`, in seconds.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Unauthenticated { error: AuthenticationError::Unavailable { retry_after, .. }, .. } => {
                Some(retry_after.as_secs().max(1))
            }
            _ => None,
        }
    }

    /// The reason for the log.
    pub(crate) fn reason(&self) -> Cow<'static, str> {
        match self {
            Self::ForbiddenHost => "forbidden Host header".into(),
            Self::ForbiddenOrigin => "forbidden origin".into(),
            Self::MissingToken => "missing bearer token".into(),
            Self::InvalidToken => "invalid bearer token".into(),
            Self::Unauthenticated { error, .. } => error.to_string().into(),
            Self::ForbiddenProfile => "the caller may not use this profile".into(),
        }
    }

    /// The message for the client.
    pub(crate) fn message(&self) -> Cow<'static, str> {
        match self {
            Self::ForbiddenHost => {
                "forbidden Host header: add the name to the allowed hosts of this server".into()
            }
            Self::ForbiddenOrigin => "forbidden origin: add it to the allowed origins of this server".into(),
            Self::MissingToken => "missing bearer token: send Authorization: Bearer TOKEN".into(),
            Self::InvalidToken => "invalid bearer token".into(),
            Self::Unauthenticated { error, .. } => error.to_string().into(),
            Self::ForbiddenProfile => "forbidden: your credentials are not for this profile".into(),
        }
    }

    /// The value of `WWW-Authenticate`.
    pub(crate) fn challenge(&self) -> Option<HeaderValue> {
        match self {
            Self::ForbiddenHost | Self::ForbiddenOrigin | Self::ForbiddenProfile => None,
            Self::Unauthenticated { challenge, .. } => challenge.clone(),
            Self::MissingToken => Some(HeaderValue::from_static(r#"Bearer realm="toolyard""#)),
            Self::InvalidToken => {
                Some(HeaderValue::from_static(r#"Bearer realm="toolyard", error="invalid_token""#))
            }
        }
    }
}

/// Checks the `Host` and `Origin` headers, each by itself.
pub(crate) fn check_host_and_origin(
    rules: &AccessRules,
    headers: &HeaderMap,
    authority: Option<&str>,
    local_address: Option<IpAddr>,
) -> Result<(), AccessError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, _) => authority,
        // A proxy may have checked the other of two hosts.
        (Some(_), Some(_)) => None,
    };
    let is_allowed_host = |host: &str| {
        is_loopback_name(host)
            || local_address
                .is_some_and(|local_address| host.trim_matches(['[', ']']).parse() == Ok(local_address))
            || rules.hosts.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(host))
    };
    if !host.and_then(without_port).is_some_and(is_allowed_host) {
        return Err(AccessError::ForbiddenHost);
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_allowed = |origin: &HeaderValue| {
        let Ok(origin) = origin.to_str() else { return false };
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.and_then(without_port).is_some_and(is_loopback_name)
            || rules.origins.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(origin))
    };
    if origins.all(is_allowed) { Ok(()) } else { Err(AccessError::ForbiddenOrigin) }
}

/// Whoever presents the local token.
pub(crate) fn check_token(access: &Access, headers: &HeaderMap) -> Result<Arc<CallerIdentity>, AccessError> {
    let Access::Token(token) = access else { return Ok(access.identity()) };
    let presented = bearer_token(headers)?.ok_or(AccessError::MissingToken)?;
    if token.matches(presented) { Ok(access.identity()) } else { Err(AccessError::InvalidToken) }
}

/// Whoever presents credentials that the authenticator accepts.
pub(crate) async fn authenticate(
    authenticator: &dyn Authenticator,
    headers: &HeaderMap,
    client_address: IpAddr,
    path: &str,
) -> Result<Arc<CallerIdentity>, AccessError> {
    let header = |name: &str| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => value.to_str().map(Some).map_err(|_| InvalidHeader),
            // A proxy may have set the other of two.
            (Some(_), Some(_)) => Err(InvalidHeader),
        }
    };
    let authenticated = match bearer_token(headers) {
        Ok(bearer) => {
            authenticator.authenticate(Credentials { bearer, header: &header, client_address }).await
        }
        Err(_) => Err(AuthenticationError::Invalid("the header Authorization is malformed")),
    };
    authenticated.map_err(|error| {
        let challenge = authenticator.challenge(path, &error);
        AccessError::Unauthenticated { error, challenge: HeaderValue::try_from(challenge).ok() }
    })
}

/// The bearer token of a request that has one; an error if the header is malformed or repeated.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, AccessError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    // A proxy may have checked the other of two.
    if values.next().is_some() {
        return Err(AccessError::InvalidToken);
    }
    let value = value.to_str().map_err(|_| AccessError::InvalidToken)?;
    let (scheme, token) = value.split_once(' ').ok_or(AccessError::InvalidToken)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        Ok(Some(token.trim()))
    } else {
        Err(AccessError::InvalidToken)
    }
}

/// A host without its port; none if malformed.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            // The host includes both brackets.
            let end = rest.find(']')? + 2;
            host.split_at_checked(end)?
        }
        None => host.split_at_checked(host.find(':').unwrap_or(host.len()))?,
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port,
        None if port.is_empty() => "",
        None => return None,
    };
    (!name.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

fn is_loopback_name(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host == "127.0.0.1" || host == "[::1]"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::AccessToken, *};

    fn check(hosts: &[&str], origin: Option<&str>) -> Result<(), AccessError> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let mut rules = AccessRules::new(Access::Open);
        rules.hosts.push("yard.example".to_owned());
        rules.origins.push("https://app.example".to_owned());
        check_host_and_origin(&rules, &headers, None, "192.168.1.5".parse().ok())
    }

    #[test]
    fn allowed_hosts_and_local_origins_pass() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "[::1]:1",
            "[::1]",
            "yard.example:9",
            "192.168.1.5:2",
        ] {
            assert_eq!(check(&[host], None), Ok(()), "{host}");
        }
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:5", "https://app.example"]
        {
            assert_eq!(check(&["localhost"], Some(origin)), Ok(()), "{origin}");
        }
    }

    #[test]
    fn host_and_origin_are_checked_independently() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:80@evil",
            "",
            ":80",
            "[::1]x",
            "192.168.1.6",
        ] {
            assert_eq!(check(&[host], Some("http://localhost")), Err(AccessError::ForbiddenHost), "{host}");
        }
        assert_eq!(check(&[], None), Err(AccessError::ForbiddenHost));
        assert_eq!(check(&["localhost", "evil.example"], None), Err(AccessError::ForbiddenHost));
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost.evil.example",
            "file://",
            "http://localhost@evil.example",
            "http://app.example",
        ] {
            assert_eq!(check(&["localhost"], Some(origin)), Err(AccessError::ForbiddenOrigin), "{origin}");
        }
    }

    #[test]
    fn only_the_right_token_passes() {
        let access = Access::Token(AccessToken::new("s3cret"));
        let check_authorization = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            check_token(&access, &headers).map(drop)
        };
        assert_eq!(check_authorization("Bearer s3cret"), Ok(()));
        assert_eq!(check_authorization("bearer  s3cret "), Ok(()));
        for wrong in ["Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret", "Bearer", "Bearer "] {
            assert_eq!(check_authorization(wrong), Err(AccessError::InvalidToken), "{wrong}");
        }
        assert_eq!(check_token(&access, &HeaderMap::new()).map(drop), Err(AccessError::MissingToken));
        let empty = Access::Token(AccessToken::new(" "));
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer "));
        assert_eq!(check_token(&empty, &headers).map(drop), Err(AccessError::InvalidToken));
        assert!(!format!("{access:?}").contains("s3cret"));
    }

    proptest! {
        #[test]
        fn only_known_hosts_are_accepted(host in "[ -~]{0,40}") {
            let known = ["localhost", "127.0.0.1", "[::1]", "yard.example", "192.168.1.5"];
            let is_known = known.iter().any(|known| {
                host.to_ascii_lowercase().strip_prefix(known).is_some_and(|rest| {
                    rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
                })
            });
            prop_assert_eq!(check(&[&host], None).is_ok(), is_known);
        }
    }
}
