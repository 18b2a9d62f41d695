//! Well-known addresses of documents about an issuer or a resource (RFC 8414, RFC 9728, OpenID Connect).

/// The address of a document about a URL: the well-known path is between the host and the path.
///
/// ```
/// use toolyard_core::well_known_url;
///
/// assert_eq!(
///     well_known_url("https://tools.example/mcp", "oauth-protected-resource"),
///     "https://tools.example/.well-known/oauth-protected-resource/mcp"
/// );
/// ```
pub fn well_known_url(url: &str, document: &str) -> String {
    let (origin, path) = split_origin(url);
    format!("{origin}/.well-known/{document}{path}")
}

/// Where an issuer may publish its metadata, in the order that MCP prescribes.
pub fn issuer_metadata_urls(issuer: &str) -> Vec<String> {
    let (origin, path) = split_origin(issuer);
    let mut urls = ["oauth-authorization-server", "openid-configuration"]
        .map(|name| well_known_url(issuer, name))
        .to_vec();
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    urls
}

/// The path has no slash at its end.
fn split_origin(url: &str) -> (&str, &str) {
    let url = url.trim_end_matches('/');
    let authority_start = url.find("://").map_or(0, |at| at + 3);
    let path_start =
        url.get(authority_start..).and_then(|rest| rest.find('/')).map(|at| authority_start + at);
    path_start.and_then(|at| url.split_at_checked(at)).unwrap_or((url, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_in_the_order_of_mcp() {
        assert_eq!(
            issuer_metadata_urls("https://id.example/tenant/7/"),
            [
                "https://id.example/.well-known/oauth-authorization-server/tenant/7",
                "https://id.example/.well-known/openid-configuration/tenant/7",
                "https://id.example/tenant/7/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            issuer_metadata_urls("http://127.0.0.1:9/"),
            [
                "http://127.0.0.1:9/.well-known/oauth-authorization-server",
                "http://127.0.0.1:9/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn the_well_known_path_is_before_the_path() {
        let url = "https://tools.example/.well-known/x";
        assert_eq!(well_known_url("https://tools.example", "x"), url);
        assert_eq!(well_known_url("https://tools.example/", "x"), url);
        assert_eq!(well_known_url("https://tools.example/a/mcp", "x"), format!("{url}/a/mcp"));
    }
}
