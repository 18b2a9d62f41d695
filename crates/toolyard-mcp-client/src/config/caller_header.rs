//! Headers whose values depend on the caller: `X-User = "${caller:subject}"`.

use std::fmt;

use http::{HeaderName, HeaderValue};
use serde_json::Value;
use toolyard_core::CallerIdentity;

use super::template::{CALLER_PREFIX, Template};

/// What the path of a claim follows.
const CLAIMS_PREFIX: &str = "claims.";

/// A header whose value depends on the caller. All other references of its value are resolved.
#[derive(Clone, PartialEq, Eq)]
pub struct CallerHeader {
    name: HeaderName,
    value: Template,
}

/// Why a header has no value for a caller. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallerHeaderError {
    /// A header of the server refers to something that the caller does not have, such as a claim of its token.
    ///
    /// Remedy: give the reference a default (`${caller:claims.dept:-none}`), or let the issuer add the claim.
    #[error("the header `{header}` needs `{reference}` of the caller, which has no such text")]
    Missing {
        /// The header.
        header: String,
        /// Such as `claims.team`.
        reference: String,
    },
    /// The value for this caller, such as a claim of its token, cannot be sent in a header unchanged.
    ///
    /// Remedy: correct the claim at the issuer, or use another one in `headers` of the server.
    #[error(
        "the value of the header `{header}` for this caller is empty, or has characters or spaces at its ends that a header cannot carry"
    )]
    Invalid {
        /// The header.
        header: String,
    },
}

/// Whether a header of this name may depend on the caller. Those of HTTP and MCP themselves must not.
pub(super) fn may_depend_on_caller(name: &str) -> bool {
    const RESERVED: [&str; 8] = [
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "te",
        "transfer-encoding",
    ];
    let name = name.to_ascii_lowercase();
    !name.starts_with("mcp-") && !RESERVED.contains(&name.as_str())
}

/// Whether a reference names something that a caller can have.
pub(super) fn is_caller_reference(path: &str) -> bool {
    let is_key = |key: &str| {
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:/".contains(&byte))
    };
    match path.strip_prefix(CLAIMS_PREFIX) {
        Some(claim) => claim.split('.').all(is_key),
        None => matches!(path, "subject" | "issuer" | "name"),
    }
}

impl CallerHeader {
    pub(super) fn new(name: HeaderName, value: Template) -> Self {
        Self { name, value }
    }

    /// The header for a caller. For a caller that is not told apart from others, and for requests without a caller, there is none,
    /// unless all references have defaults.
    pub(crate) fn for_caller(
        &self,
        identity: Option<&CallerIdentity>,
    ) -> Result<Option<(HeaderName, HeaderValue)>, CallerHeaderError> {
        let identity = identity.filter(|identity| identity.is_distinguished());
        let header = self.name.to_string();
        let value = match (self.value.expand(|reference| value_of(identity?, reference)), identity) {
            (Ok(value), _) => value.into_exposed(),
            (Err(_), None) => return Ok(None),
            (Err(missing), Some(_)) => {
                let reference = missing.0.strip_prefix(CALLER_PREFIX).unwrap_or(&missing.0).to_owned();
                return Err(CallerHeaderError::Missing { header, reference });
            }
        };
        // Servers ignore spaces at the ends, so that `admin ` would be taken for `admin`, and read other bytes differently.
        let is_exact = !value.is_empty() && value.is_ascii() && value.trim() == value;
        let value = Some(value).filter(|_| is_exact).and_then(|value| HeaderValue::from_str(&value).ok());
        let mut value = value.ok_or(CallerHeaderError::Invalid { header })?;
        value.set_sensitive(true);
        Ok(Some((self.name.clone(), value)))
    }
}

/// What a reference means for a caller.
fn value_of(identity: &CallerIdentity, reference: &str) -> Option<String> {
    match reference.strip_prefix(CALLER_PREFIX)? {
        "subject" => Some(identity.subject.to_string()),
        "issuer" => Some(identity.issuer.to_string()),
        "name" => Some(identity.name.to_string()),
        path => {
            let mut keys = path.strip_prefix(CLAIMS_PREFIX)?.split('.');
            let first = identity.claims.get(keys.next()?)?;
            match keys.try_fold(first, |value, key| value.get(key))? {
                Value::String(text) => Some(text.clone()),
                value @ (Value::Bool(_) | Value::Number(_)) => Some(value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            }
        }
    }
}

/// Shows no values.
impl fmt::Debug for CallerHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerHeader").field("name", &self.name).field("value", &self.value).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn header(value: &str) -> CallerHeader {
        CallerHeader::new(HeaderName::from_static("x-user"), Template::parse(value).unwrap())
    }

    fn caller(subject: &str, claims: &Value) -> CallerIdentity {
        let mut identity = CallerIdentity::principal("https://issuer.example", subject);
        identity.claims = claims.as_object().cloned().unwrap_or_default();
        identity
    }

    fn value_for(template: &str, identity: &CallerIdentity) -> Result<Option<String>, CallerHeaderError> {
        let header = header(template).for_caller(Some(identity))?;
        Ok(header.map(|(_, value)| value.to_str().unwrap().to_owned()))
    }

    #[test]
    fn references_are_resolved_for_the_caller() {
        let ada = caller(
            "ada",
            &json!({"team": "blue", "level": 3, "deep": {"id": "d-1"}, "list": ["x"], "null": null}),
        );
        let cases = [
            ("${caller:subject}", "ada"),
            ("${caller:issuer}|${caller:name}", "https://issuer.example|ada"),
            ("team ${caller:claims.team}, level ${caller:claims.level}", "team blue, level 3"),
            ("${caller:claims.deep.id}", "d-1"),
            ("${caller:claims.none:-guest}", "guest"),
        ];
        for (template, expected) in cases {
            assert_eq!(value_for(template, &ada).unwrap().as_deref(), Some(expected), "{template}");
        }
        for missing in ["claims.none", "claims.list", "claims.deep", "claims.null", "claims.team.x"] {
            let error = value_for(&format!("${{caller:{missing}}}"), &ada).unwrap_err();
            assert!(error.to_string().contains(&format!("`{missing}`")), "{error}");
        }
    }

    #[test]
    fn there_is_no_header_without_a_caller_unless_it_has_a_default() {
        let local = CallerIdentity::local_token([1; 32]);
        for identity in [None, Some(&local), Some(&CallerIdentity::anonymous())] {
            assert_eq!(header("${caller:subject}").for_caller(identity), Ok(None));
            assert!(header("${caller:subject:-operator}").for_caller(identity).unwrap().is_some());
        }
    }

    #[test]
    fn a_value_cannot_add_headers_or_pass_for_another() {
        for hostile in
            ["a\r\nX-Admin: yes", "a\nb", "a\0b", "admin ", " admin", "", "\u{7f}", "ad\u{e9}", "\t"]
        {
            let error = value_for("${caller:subject}", &caller(hostile, &json!({}))).unwrap_err();
            assert_eq!(error, CallerHeaderError::Invalid { header: "x-user".to_owned() }, "{hostile:?}");
        }
    }

    #[test]
    fn only_own_headers_and_known_references_are_allowed() {
        for name in ["X-User", "Authorization", "X-Mcp-Team"] {
            assert!(may_depend_on_caller(name), "{name}");
        }
        for name in ["Host", "Mcp-Session-Id", "MCP-Protocol-Version", "content-length", "Transfer-Encoding"]
        {
            assert!(!may_depend_on_caller(name), "{name}");
        }
        for path in ["subject", "claims.a", "claims.realm_access.id", "claims.https://x/y"] {
            assert!(is_caller_reference(path), "{path}");
        }
        for path in ["", "token", "claims", "claims.", "claims.a..b", "groups", "claims.a b"] {
            assert!(!is_caller_reference(path), "{path}");
        }
    }

    proptest! {
        /// What is sent is exactly the subject, or nothing is sent.
        #[test]
        fn a_subject_is_sent_unchanged_or_not_at_all(subject in any::<String>()) {
            match value_for("${caller:subject}", &caller(&subject, &json!({}))) {
                Ok(sent) => prop_assert_eq!(sent, Some(subject)),
                Err(error) => prop_assert_eq!(error, CallerHeaderError::Invalid { header: "x-user".to_owned() }),
            }
        }
    }
}
