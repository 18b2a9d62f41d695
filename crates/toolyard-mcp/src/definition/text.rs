//! Text from a server made fit to be shown: short, and with nothing hidden in it.

use toolyard_core::shown;

/// At most this many characters, on one line, with hidden characters spelled out.
pub(crate) fn brief(text: &str, limit: usize) -> String {
    let cut: String = text.chars().take(limit).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    let cut = cut.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    format!("{}{more}", shown(&cut))
}
