//! Who is let in over HTTP: by the name they use for us, by the page they come from, by what they show.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{Access, HttpConfig};

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// They use a name for us that is not ours.
    Host,
    /// They come from a web page that may not.
    Origin,
    /// They show nothing.
    NoToken,
    /// They show the wrong thing.
    WrongToken,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
        }
    }

    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Host => {
                "this server is not known under the name in the Host header; see its setting for hosts"
            }
            Self::Origin => "web pages of this origin may not come in; see the setting for origins",
            Self::NoToken => "a bearer token is needed: Authorization: Bearer TOKEN",
            Self::WrongToken => "this bearer token is not the right one",
        }
    }

    /// How to get in.
    pub(super) fn challenge(self) -> Option<HeaderValue> {
        match self {
            Self::Host | Self::Origin => None,
            Self::NoToken => Some(HeaderValue::from_static(r#"Bearer realm="toolyard""#)),
            Self::WrongToken => {
                Some(HeaderValue::from_static(r#"Bearer realm="toolyard", error="invalid_token""#))
            }
        }
    }
}

/// That the name is ours and the page may come in; each by itself.
pub(super) fn check_place(
    config: &HttpConfig,
    headers: &HeaderMap,
    authority: Option<&str>,
    local: Option<IpAddr>,
) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, _) => authority,
        // Of two names, somebody before us may have checked the other.
        (Some(_), Some(_)) => None,
    };
    let is_ours = |host: &str| {
        is_this_machine(host)
            || local.is_some_and(|local| host.trim_matches(['[', ']']).parse() == Ok(local))
            || config.hosts.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(host))
    };
    if !host.and_then(without_port).is_some_and(is_ours) {
        return Err(Refusal::Host);
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let is_fine = |origin: &HeaderValue| {
        let Ok(origin) = origin.to_str() else { return false };
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.and_then(without_port).is_some_and(is_this_machine)
            || config.origins.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(origin))
    };
    if origins.all(is_fine) { Ok(()) } else { Err(Refusal::Origin) }
}

/// That what is shown lets in.
pub(super) fn check_access(access: &Access, headers: &HeaderMap) -> Result<(), Refusal> {
    let Access::Token(token) = access else { return Ok(()) };
    let shown = headers.get(header::AUTHORIZATION).ok_or(Refusal::NoToken)?;
    let shown = shown.to_str().map_err(|_| Refusal::WrongToken)?;
    let (scheme, shown) = shown.split_once(' ').ok_or(Refusal::WrongToken)?;
    let is_right = scheme.eq_ignore_ascii_case("bearer") && token.is(shown.trim());
    if is_right { Ok(()) } else { Err(Refusal::WrongToken) }
}

/// A name or an address without the port after it; none if it is neither.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
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

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host == "127.0.0.1" || host == "[::1]"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::AccessToken, *};

    fn place(hosts: &[&str], origin: Option<&str>) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let mut config = HttpConfig::new(Access::Open);
        config.hosts.push("yard.example".to_owned());
        config.origins.push("https://app.example".to_owned());
        check_place(&config, &headers, None, "192.168.1.5".parse().ok())
    }

    #[test]
    fn names_that_are_ours_and_pages_of_this_machine_are_fine() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "[::1]:1",
            "[::1]",
            "yard.example:9",
            "192.168.1.5:2",
        ] {
            assert_eq!(place(&[host], None), Ok(()), "{host}");
        }
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:5", "https://app.example"]
        {
            assert_eq!(place(&["localhost"], Some(origin)), Ok(()), "{origin}");
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
            assert_eq!(place(&[host], Some("http://localhost")), Err(Refusal::Host), "{host}");
        }
        assert_eq!(place(&[], None), Err(Refusal::Host));
        assert_eq!(place(&["localhost", "evil.example"], None), Err(Refusal::Host));
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost.evil.example",
            "file://",
            "http://localhost@evil.example",
            "http://app.example",
        ] {
            assert_eq!(place(&["localhost"], Some(origin)), Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn only_the_token_lets_in() {
        let access = Access::Token(AccessToken::new("s3cret"));
        let shown = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            check_access(&access, &headers)
        };
        assert_eq!(shown("Bearer s3cret"), Ok(()));
        assert_eq!(shown("bearer  s3cret "), Ok(()));
        for wrong in ["Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret", "Bearer", "Bearer "] {
            assert_eq!(shown(wrong), Err(Refusal::WrongToken), "{wrong}");
        }
        assert_eq!(check_access(&access, &HeaderMap::new()), Err(Refusal::NoToken));
        let empty = Access::Token(AccessToken::new(" "));
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer "));
        assert_eq!(check_access(&empty, &headers), Err(Refusal::WrongToken));
        assert!(!format!("{access:?}").contains("s3cret"));
    }

    proptest! {
        #[test]
        fn no_name_that_is_not_ours_comes_in(host in "[ -~]{0,40}") {
            let known = ["localhost", "127.0.0.1", "[::1]", "yard.example", "192.168.1.5"];
            let is_known = known.iter().any(|known| {
                host.to_ascii_lowercase().strip_prefix(known).is_some_and(|rest| {
                    rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
                })
            });
            prop_assert_eq!(place(&[&host], None).is_ok(), is_known);
        }
    }
}
