//! [`ResourceMetadata`]: how clients find out where to get tokens (RFC 9728), and what a refused request is told.

use std::fmt::Write as _;

use serde_json::json;
use toolyard_core::{AuthenticationError, well_known_url};

use super::config::OAuthConfig;

/// Where clients look for metadata; the path of the resource may follow.
const WELL_KNOWN_PATH: &str = "/.well-known/oauth-protected-resource";
const REALM: &str = "toolyard";

/// The metadata of this gateway as a protected resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceMetadata {
    document: String,
    url: String,
    scope: String,
}

impl ResourceMetadata {
    pub(crate) fn new(config: &OAuthConfig) -> Self {
        let mut document = json!({
            "resource": config.resource,
            "authorization_servers": [config.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Toolyard",
        });
        if let (false, Some(fields)) = (config.scopes.is_empty(), document.as_object_mut()) {
            fields.insert("scopes_supported".to_owned(), json!(config.scopes));
        }
        Self {
            document: document.to_string(),
            url: well_known_url(&config.resource, "oauth-protected-resource"),
            scope: config.scopes.join(" "),
        }
    }

    /// The document, if this is a path of metadata. All endpoints of a gateway are one resource.
    pub(crate) fn at(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(WELL_KNOWN_PATH)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| self.document.clone())
    }
}

/// The value of `WWW-Authenticate` (RFC 6750, RFC 9728).
pub(crate) fn challenge(metadata: Option<&ResourceMetadata>, error: &AuthenticationError) -> String {
    let mut challenge = format!("Bearer realm=\"{REALM}\"");
    let code = match error {
        AuthenticationError::Invalid(_) => Some("invalid_token"),
        AuthenticationError::InsufficientScope(_) => Some("insufficient_scope"),
        _ => None,
    };
    if let Some(code) = code {
        let description: String =
            error.to_string().chars().filter(|letter| !matches!(letter, '"' | '\\')).collect();
        let _ = write!(challenge, ", error=\"{code}\", error_description=\"{description}\"");
    }
    if let Some(metadata) = metadata {
        if !metadata.scope.is_empty() {
            let _ = write!(challenge, ", scope=\"{}\"", metadata.scope);
        }
        let _ = write!(challenge, ", resource_metadata=\"{}\"", metadata.url);
    }
    challenge
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> ResourceMetadata {
        let mut config = OAuthConfig::new("https://id.example", "https://tools.example/mcp");
        config.scopes = vec!["tools:call".to_owned(), "tools:list".to_owned()];
        ResourceMetadata::new(&config)
    }

    #[test]
    fn the_metadata_names_resource_issuer_and_scopes() {
        let expected = json!({
            "resource": "https://tools.example/mcp",
            "authorization_servers": ["https://id.example"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Toolyard",
            "scopes_supported": ["tools:call", "tools:list"],
        });
        for path in ["", "/mcp", "/mcp/office"] {
            let document = metadata().at(&format!("{WELL_KNOWN_PATH}{path}")).unwrap();
            assert_eq!(serde_json::from_str::<serde_json::Value>(&document).unwrap(), expected);
        }
        for path in
            ["/mcp", "/", "/.well-known/oauth-protected-resourcex", "/.well-known/openid-configuration"]
        {
            assert_eq!(metadata().at(path), None, "{path}");
        }
    }

    #[test]
    fn challenges_say_what_is_wrong_and_where_to_sign_in() {
        let metadata = metadata();
        let challenge = |error| challenge(Some(&metadata), &error);
        let location = r#"scope="tools:call tools:list", resource_metadata="https://tools.example/.well-known/oauth-protected-resource/mcp""#;
        assert_eq!(
            challenge(AuthenticationError::Missing),
            format!(r#"Bearer realm="toolyard", {location}"#)
        );
        assert_eq!(
            challenge(AuthenticationError::Invalid("a \"bad\" token")),
            format!(
                r#"Bearer realm="toolyard", error="invalid_token", error_description="invalid bearer token: a bad token", {location}"#
            )
        );
        let lacking = challenge(AuthenticationError::InsufficientScope("tools:call tools:list".to_owned()));
        assert!(lacking.contains(r#"error="insufficient_scope""#), "{lacking}");
        assert_eq!(super::challenge(None, &AuthenticationError::Missing), r#"Bearer realm="toolyard""#);
    }
}
