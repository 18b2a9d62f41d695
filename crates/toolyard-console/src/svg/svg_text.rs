//! Text in drawings: estimated widths, shortening, and the ids to which drawings link.

use std::fmt::Write as _;

/// Longest anchor of a step, in bytes.
const MAX_ANCHOR_BYTES: usize = 40;

/// Estimated width of a character in thousandths of the font size. The server has no fonts, so the estimates are those
/// of a wide system font: a text may be shorter than estimated and is hardly ever longer.
fn char_width(letter: char) -> usize {
    match letter {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | ' ' | '.' | ',' | ':' | ';' | '!' | '|' | '\'' | '('
        | ')' => 380,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 920,
        'A'..='Z' | '&' | '_' => 700,
        '\u{0}'..='\u{2ff}' => 580,
        '\u{300}'..='\u{36f}' => 0,
        '\u{370}'..='\u{10ff}' => 680,
        _ => 1040,
    }
}

/// The width of every ASCII character of a monospaced font, in thousandths of the font size.
const MONOSPACE_WIDTH: usize = 620;

/// A font for which texts are shortened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Font {
    /// Font size in tenths of a pixel.
    pub(crate) size_tenths: usize,
    /// Whether all ASCII characters have the same width.
    pub(crate) is_monospace: bool,
}

/// `text` cut with `…` to an estimated width of `pixels`.
pub(crate) fn shorten_to_width(text: &str, pixels: usize, font: Font) -> String {
    let mut output = String::new();
    let mut width = 0;
    let limit = pixels * 10_000 / font.size_tenths.max(1);
    let mut letters = text.trim().chars().peekable();
    // Characters without width would make a short text of any number of bytes.
    for _ in 0..120 {
        let Some(letter) = letters.next() else { return output };
        width += if font.is_monospace && letter.is_ascii() { MONOSPACE_WIDTH } else { char_width(letter) };
        let room_after = if letters.peek().is_some() { 800 } else { 0 };
        if width + room_after > limit {
            break;
        }
        output.push(letter);
    }
    output.push('…');
    output
}

/// The HTML id of the details of a step, to which the drawings link: `step-` and the id of the step, in which every
/// character that is not a letter or digit of ASCII, `_`, `-` or `.` is replaced. Different ids have different anchors.
pub(crate) fn step_anchor(id: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let mut anchor = String::from("step-");
    anchor
        .extend(id.chars().take(MAX_ANCHOR_BYTES).map(|letter| if is_plain(letter) { letter } else { '_' }));
    if anchor.len() > MAX_ANCHOR_BYTES || !id.chars().all(is_plain) {
        anchor.truncate(MAX_ANCHOR_BYTES - 17);
        // FNV-1a: ids are told apart, not protected.
        let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let _ = write!(anchor, "~{hash:016x}");
    }
    anchor
}
