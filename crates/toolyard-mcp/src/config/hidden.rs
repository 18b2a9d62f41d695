//! How configured things are shown without showing what may be a secret, or what may trick a terminal.

use std::{collections::BTreeMap, fmt};

/// The names of a map; its values may be secrets.
pub(super) struct Names<'a>(pub(super) &'a BTreeMap<String, String>);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys().map(|name| shown(name))).finish()
    }
}

/// An address as far as its host; user, path and query may hold secrets.
pub(super) struct Address<'a>(pub(super) &'a str);

impl fmt::Debug for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parsed = url::Url::parse(self.0).ok();
        match parsed.as_ref().and_then(|url| Some((url.scheme(), url.host_str()?))) {
            Some((scheme, host)) => write!(f, "{scheme}://{}/…", shown(host)),
            None => f.write_str("…"),
        }
    }
}

/// A name from outside as it may be shown: short, in plain letters, without a secret in it.
pub(super) fn shown(name: &str) -> String {
    const LONGEST: usize = 80;
    let plain = |letter: char| if is_plain(letter) { letter } else { '\u{fffd}' };
    let mut text: String = name.chars().take(LONGEST).map(plain).collect();
    if name.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    toolyard_core::redact(&text).into_owned()
}

/// Letters that show themselves: no control, no direction, no zero width, no tag.
fn is_plain(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}
