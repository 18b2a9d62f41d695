//! Displays configured values without secrets and unsafe characters.

use std::{collections::BTreeMap, fmt};

/// The keys of a map; its values may be secrets.
pub(super) struct RedactedMap<'a>(pub(super) &'a BTreeMap<String, String>);

impl fmt::Debug for RedactedMap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys().map(|name| safe_preview(name))).finish()
    }
}

/// Scheme and host of a URL; user, path and query may contain secrets.
pub(super) struct RedactedUrl<'a>(pub(super) &'a str);

impl fmt::Debug for RedactedUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parsed = url::Url::parse(self.0).ok();
        match parsed.as_ref().and_then(|url| Some((url.scheme(), url.host_str()?))) {
            Some((scheme, host)) => write!(f, "{scheme}://{}/…", safe_preview(host)),
            None => f.write_str("…"),
        }
    }
}

/// A short preview without unsafe characters and secrets.
pub(super) fn safe_preview(text: &str) -> String {
    const MAX_PREVIEW_CHARS: usize = 80;
    let replace_invisible =
        |character: char| if toolyard_core::text::is_visible(character) { character } else { '\u{fffd}' };
    let mut preview: String = text.chars().take(MAX_PREVIEW_CHARS).map(replace_invisible).collect();
    if text.chars().nth(MAX_PREVIEW_CHARS).is_some() {
        preview.push('…');
    }
    toolyard_core::redact(&preview).into_owned()
}
