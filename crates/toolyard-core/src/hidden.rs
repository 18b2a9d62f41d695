//! Finds text that people do not see: tags, zero-width characters, changes of direction, terminal escapes, controls.
//!
//! Ordinary writing raises no alarm: joiners inside emoji and inside scripts that need them, one variation selector
//! after a character that has variants, direction marks in right-to-left text, the three flags that are spelled with
//! tag characters. Whatever is left has no purpose but to hide something from a reader or to steer a terminal.

use std::{borrow::Cow, fmt};

/// A run of this many hidden characters is an encoded message, whatever they are.
const MESSAGE_LENGTH: usize = 8;
/// What the flags of England, Scotland and Wales are spelled with after the black flag.
const FLAG_TAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// The ways in which text hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hidden {
    /// Tag characters: a whole alphabet nobody sees and a model reads.
    Tag,
    /// An override of the writing direction: people read other words than a model does.
    Override,
    /// Embeddings, isolates and marks of direction.
    Direction,
    /// Zero-width spaces, joiners out of place, soft hyphens.
    ZeroWidth,
    /// Variation selectors where nothing varies.
    Selector,
    /// Letters that look like nothing, such as the Hangul fillers.
    Blank,
    /// A terminal sequence.
    Escape,
    /// Any other control character or noncharacter.
    Control,
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tag => "tag characters",
            Self::Override => "direction overrides",
            Self::Direction => "direction controls",
            Self::ZeroWidth => "zero-width characters",
            Self::Selector => "stray variation selectors",
            Self::Blank => "blank letters",
            Self::Escape => "terminal escapes",
            Self::Control => "control characters",
        })
    }
}

/// One place where something is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenPlace {
    /// How it hides.
    pub kind: Hidden,
    /// The byte at which it begins.
    pub start: usize,
    /// The byte after its end.
    pub end: usize,
}

/// All places in `text` where something is hidden, in order. Line feeds, tabs and carriage returns before a line feed
/// hide nothing.
pub fn hidden_places(text: &str) -> Vec<HiddenPlace> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Vec::new();
    }
    let mut finder = Finder { text, right_to_left: None, places: Vec::new() };
    let mut letters = text.char_indices();
    // The character before this one, unless it is hidden: what is taken out must not excuse what follows it.
    let mut before = None;
    while let Some((start, letter)) = letters.next() {
        let rest = letters.as_str();
        if letter == '\u{1f3f4}'
            && let Some(tags) = FLAG_TAGS.into_iter().find(|tags| rest.starts_with(tags))
        {
            letters.by_ref().take(tags.chars().count()).for_each(drop);
            before = Some(letter);
        } else if letter == '\u{1b}' || letter == '\u{9b}' {
            let length = escape_length(letter, rest);
            letters.by_ref().take(length).for_each(drop);
            finder.found(Hidden::Escape, start, text.len() - letters.as_str().len());
            before = None;
        } else if let Some(kind) = finder.hides(before, letter, rest) {
            finder.found(kind, start, start + letter.len_utf8());
            before = None;
        } else {
            before = Some(letter);
        }
    }
    finder.places
}

/// The text without what is hidden in it, and what that was.
pub fn without_hidden(text: &str) -> (Cow<'_, str>, Vec<HiddenPlace>) {
    replaced(text, |_, _| {})
}

/// The text with what is hidden in it spelled out as `\u{…}`, fit for a terminal.
pub fn shown(text: &str) -> Cow<'_, str> {
    replaced(text, |clean, hidden| clean.extend(hidden.chars().flat_map(char::escape_unicode))).0
}

/// Whether what was found can only be an attack: tags, overrides of direction, or a run long enough to be a message.
pub fn is_hostile(places: &[HiddenPlace]) -> bool {
    let unseen = |place: &&HiddenPlace| !matches!(place.kind, Hidden::Escape | Hidden::Control);
    let mut run = 0;
    let mut end = None;
    places.iter().filter(unseen).any(|place| {
        run = if end == Some(place.start) { run + 1 } else { 1 };
        end = Some(place.end);
        matches!(place.kind, Hidden::Tag | Hidden::Override) || run >= MESSAGE_LENGTH
    })
}

fn replaced(text: &str, mut write: impl FnMut(&mut String, &str)) -> (Cow<'_, str>, Vec<HiddenPlace>) {
    let places = hidden_places(text);
    if places.is_empty() {
        return (Cow::Borrowed(text), places);
    }
    let mut clean = String::with_capacity(text.len());
    let mut kept = 0;
    for place in &places {
        clean.push_str(text.get(kept..place.start).unwrap_or_default());
        write(&mut clean, text.get(place.start..place.end).unwrap_or_default());
        kept = place.end;
    }
    clean.push_str(text.get(kept..).unwrap_or_default());
    (Cow::Owned(clean), places)
}

/// How many characters after its first belong to a terminal sequence: `ESC [ … m`, `ESC ] … BEL`, `ESC c`.
fn escape_length(first: char, rest: &str) -> usize {
    let mut letters = rest.chars();
    let introducer = if first == '\u{9b}' { Some('[') } else { letters.next() };
    let taken = usize::from(first != '\u{9b}' && introducer.is_some());
    match introducer {
        Some('[') => {
            let parameters = letters.by_ref().take_while(|letter| matches!(letter, ' '..='?')).count();
            let last = rest.chars().nth(taken + parameters);
            taken + parameters + usize::from(last.is_some_and(|letter| matches!(letter, '@'..='~')))
        }
        // What a terminal would swallow until the end of the string stays readable: only the introducer goes.
        Some(']' | 'P' | '_' | '^' | 'X') => taken,
        Some(' '..='~') => taken,
        _ => 0,
    }
}

struct Finder<'a> {
    text: &'a str,
    /// Whether the text has right-to-left letters, once that was asked.
    right_to_left: Option<bool>,
    places: Vec<HiddenPlace>,
}

impl Finder<'_> {
    fn found(&mut self, kind: Hidden, start: usize, end: usize) {
        self.places.push(HiddenPlace { kind, start, end });
    }

    fn hides(&mut self, before: Option<char>, letter: char, rest: &str) -> Option<Hidden> {
        match letter {
            '\n' | '\t' | ' '..='~' => None,
            '\r' => (!rest.starts_with('\n')).then_some(Hidden::Control),
            _ if letter.is_control() => Some(Hidden::Control),
            '\u{fdd0}'..='\u{fdef}' | '\u{fff9}'..='\u{fffb}' => Some(Hidden::Control),
            _ if u32::from(letter) & 0xfffe == 0xfffe => Some(Hidden::Control),
            '\u{200c}' | '\u{200d}' => (!joins(before, letter, rest)).then_some(Hidden::ZeroWidth),
            '\u{200b}' => (!before.is_some_and(writes_without_spaces)).then_some(Hidden::ZeroWidth),
            '\u{ad}'
            | '\u{34f}'
            | '\u{180e}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{feff}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{1bca0}'..='\u{1bca3}' => Some(Hidden::ZeroWidth),
            '\u{61c}' | '\u{200e}' | '\u{200f}' => (!self.is_right_to_left()).then_some(Hidden::Direction),
            '\u{202d}' | '\u{202e}' => Some(Hidden::Override),
            '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}' => Some(Hidden::Direction),
            '\u{fe00}'..='\u{fe0f}' => (!before.is_some_and(has_variants)).then_some(Hidden::Selector),
            '\u{180b}'..='\u{180d}' | '\u{180f}' => {
                (!matches!(before, Some('\u{1820}'..='\u{18aa}'))).then_some(Hidden::Selector)
            }
            '\u{e0100}'..='\u{e01ef}' => (!before.is_some_and(is_ideograph)).then_some(Hidden::Selector),
            '\u{e0000}'..='\u{e0fff}' => Some(Hidden::Tag),
            '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => {
                Some(Hidden::Blank)
            }
            _ => None,
        }
    }

    fn is_right_to_left(&mut self) -> bool {
        let text = self.text;
        *self.right_to_left.get_or_insert_with(|| {
            text.chars().any(|letter| {
                matches!(letter, '\u{590}'..='\u{61b}' | '\u{61d}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdcf}'
                    | '\u{fdf0}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
            })
        })
    }
}

/// Whether a joiner or non-joiner stands where writing needs it: inside an emoji, or after a letter of a script whose
/// letters change their form by what follows.
fn joins(before: Option<char>, joiner: char, rest: &str) -> bool {
    let Some(before) = before else { return false };
    let inside_emoji = joiner == '\u{200d}'
        && (is_pictograph(before) || before == '\u{fe0f}')
        && rest.chars().next().is_some_and(is_pictograph);
    inside_emoji || has_joined_letters(before)
}

fn has_joined_letters(letter: char) -> bool {
    matches!(letter, '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{109f}' | '\u{1780}'..='\u{17b3}'
        | '\u{17b6}'..='\u{17ff}' | '\u{1820}'..='\u{18aa}' | '\u{1a20}'..='\u{1aad}' | '\u{1b00}'..='\u{1c4f}'
        | '\u{a840}'..='\u{a8ff}' | '\u{a980}'..='\u{a9df}' | '\u{fb50}'..='\u{fdcf}' | '\u{fe70}'..='\u{fefc}'
        | '\u{11000}'..='\u{11fff}')
}

fn writes_without_spaces(letter: char) -> bool {
    matches!(letter, '\u{e01}'..='\u{fff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17ff}'
        | '\u{1950}'..='\u{1aad}')
}

fn is_pictograph(letter: char) -> bool {
    matches!(letter, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{2460}'..='\u{24ff}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{3005}'..='\u{3007}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Whether one selector after this character can make a difference: emoji, keycaps, symbols, ideographs, punctuation
/// of East Asia. Letters of alphabets have no variants.
fn has_variants(letter: char) -> bool {
    is_pictograph(letter)
        || is_ideograph(letter)
        || matches!(letter, '#' | '*' | '0'..='9' | '\u{2018}'..='\u{201d}' | '\u{2200}'..='\u{22ff}'
            | '\u{2a00}'..='\u{2aff}' | '\u{3001}' | '\u{3002}' | '\u{1000}'..='\u{109f}' | '\u{a856}'..='\u{a85c}'
            | '\u{ff01}'..='\u{ff1f}')
}

#[cfg(test)]
#[path = "hidden_tests.rs"]
mod tests;
