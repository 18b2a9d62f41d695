//! [`Language`]: the languages of the console.

use http::{HeaderMap, header};

/// A language of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    /// The value of `<html lang>`.
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        }
    }

    /// Its name in cookies and queries.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    pub(crate) fn parse(code: &str) -> Option<Self> {
        [Self::English, Self::Chinese].into_iter().find(|language| language.code() == code)
    }

    /// The language that a browser prefers.
    pub(crate) fn of_header(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
        let mut best = (Self::default(), 0.0_f32);
        for range in values.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';');
            let tag = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
            let quality = parts.find_map(|part| part.trim().strip_prefix("q=")?.parse().ok()).unwrap_or(1.0);
            let language = match tag.split('-').next() {
                Some("zh") => Self::Chinese,
                Some("en") => Self::English,
                _ => continue,
            };
            if quality > best.1 {
                best = (language, quality);
            }
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_known_language_is_chosen() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, value.parse().unwrap());
            Language::of_header(&headers)
        };
        assert_eq!(of("zh-CN,zh;q=0.9,en;q=0.8"), Language::Chinese);
        assert_eq!(of("en-US,en;q=0.9,zh;q=0.8"), Language::English);
        assert_eq!(of("de, zh-TW;q=0.5"), Language::Chinese);
        assert_eq!(of("en;q=0.1, zh;q=0.2"), Language::Chinese);
        assert_eq!(of("fr;;q=x,,;"), Language::English);
    }
}
