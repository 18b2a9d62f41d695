//! Where an OpenAI-compatible server answers, made of what an operator wrote.

use std::fmt;

use url::Url;

/// The address of a server. What is shown of it has neither a password nor a query.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address(Url);

impl Address {
    /// Reads an address as operators write it: with or without `/v1`, a slash at the end, or the whole path of a request.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let mut url = Url::parse(&with_scheme).map_err(|error| error.to_string())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("it must begin with http:// or https://".to_owned());
        }
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/chat/completions").unwrap_or(path).trim_end_matches('/').to_owned();
        url.set_path(if path.is_empty() { "/v1" } else { &path });
        Ok(Self(url))
    }

    /// The address of something at this server.
    pub(super) fn at(&self, what: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}/{what}", self.0.path()));
        url
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.0.port().map(|port| format!(":{port}")).unwrap_or_default();
        write!(f, "{}://{}{port}{}", self.0.scheme(), self.0.host_str().unwrap_or_default(), self.0.path())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_written_in_any_usual_way() {
        for text in [
            "http://127.0.0.1:8080",
            "127.0.0.1:8080/",
            "http://127.0.0.1:8080/v1/",
            "http://127.0.0.1:8080/v1/chat/completions",
        ] {
            let address = Address::read(text).unwrap();
            assert_eq!(address.to_string(), "http://127.0.0.1:8080/v1", "{text}");
            assert_eq!(address.at("chat/completions").as_str(), "http://127.0.0.1:8080/v1/chat/completions");
        }
        let other = Address::read("https://dashscope.example.com/compatible-mode/v1").unwrap();
        assert_eq!(other.at("models").as_str(), "https://dashscope.example.com/compatible-mode/v1/models");
        assert!(Address::read("ftp://a/b").is_err());
        assert!(Address::read("").is_err());
    }

    #[test]
    fn passwords_and_queries_are_sent_and_not_shown() {
        let address = Address::read("https://me:secret@models.example.com/v1?key=secret").unwrap();
        assert_eq!(address.to_string(), "https://models.example.com/v1");
        assert_eq!(format!("{address:?}"), "https://models.example.com/v1");
        assert!(address.at("models").as_str().ends_with("/v1/models?key=secret"));
    }
}
