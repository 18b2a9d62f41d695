//! The base URL of a model server.

use std::fmt;

use url::Url;

/// A base URL. Its `Display` and `Debug` omit credentials and the query.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BaseUrl(Url);

#[derive(Debug, thiserror::Error)]
pub(crate) enum BaseUrlError {
    #[error(transparent)]
    Syntax(#[from] url::ParseError),
    /// `url` of a model is not an HTTP URL.
    ///
    /// Remedy: write for example `http://127.0.0.1:11434/v1`.
    #[error("the scheme must be http:// or https://")]
    Scheme,
}

impl BaseUrl {
    /// Parses a URL with or without scheme, `/v1`, a trailing slash, `/chat/completions` or `/messages`.
    pub(crate) fn parse(text: &str) -> Result<Self, BaseUrlError> {
        let text = text.trim();
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let mut url = Url::parse(&with_scheme)?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(BaseUrlError::Scheme);
        }
        let path = url.path().trim_end_matches('/');
        let endpoints = ["/chat/completions", "/messages"];
        let path = endpoints.iter().find_map(|endpoint| path.strip_suffix(*endpoint)).unwrap_or(path);
        let path = path.trim_end_matches('/').to_owned();
        url.set_path(if path.is_empty() { "/v1" } else { &path });
        Ok(Self(url))
    }

    /// The URL of a path below the base URL.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}/{path}", self.0.path()));
        url
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.0.port().map(|port| format!(":{port}")).unwrap_or_default();
        write!(f, "{}://{}{port}{}", self.0.scheme(), self.0.host_str().unwrap_or_default(), self.0.path())
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_usual_forms_are_accepted() {
        for text in [
            "http://127.0.0.1:8080",
            "127.0.0.1:8080/",
            "http://127.0.0.1:8080/v1/",
            "http://127.0.0.1:8080/v1/chat/completions",
            "http://127.0.0.1:8080/v1/messages",
        ] {
            let url = BaseUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), "http://127.0.0.1:8080/v1", "{text}");
            assert_eq!(url.join("chat/completions").as_str(), "http://127.0.0.1:8080/v1/chat/completions");
        }
        let other = BaseUrl::parse("https://dashscope.example.com/compatible-mode/v1").unwrap();
        assert_eq!(other.join("models").as_str(), "https://dashscope.example.com/compatible-mode/v1/models");
        assert!(BaseUrl::parse("ftp://a/b").is_err());
        assert!(BaseUrl::parse("").is_err());
    }

    #[test]
    fn credentials_and_query_are_sent_but_not_shown() {
        let url = BaseUrl::parse("https://me:secret@models.example.com/v1?key=secret").unwrap();
        assert_eq!(url.to_string(), "https://models.example.com/v1");
        assert_eq!(format!("{url:?}"), "https://models.example.com/v1");
        assert!(url.join("models").as_str().ends_with("/v1/models?key=secret"));
    }
}
