//! Characters that deceive a reader or control a terminal, and what to do about them.
//!
//! Text from servers, skills and models can hold characters that people do not see and models read (tags, zero-width
//! characters), characters that change the reading order, and terminal escapes. Ordinary writing passes: joiners inside
//! emoji and inside scripts that need them, one variation selector after a symbol that has this variant, single direction
//! marks in right-to-left text, and the three flags that are spelled with tag characters. Variation selectors after
//! ideographs do not pass: there are 256 of them, so that each ideograph could carry a hidden byte.
//!
//! | function | use |
//! |---|---|
//! | [`find_unsafe`] | decide about a text |
//! | [`sanitize`] | remove them: text for a model |
//! | [`escape_unsafe`] | make them visible: text for a terminal or a log |
//! | [`ChunkSanitizer`], [`ChunkEscaper`] | the same for text that arrives in chunks |
//! | [`sanitize_json`](super::sanitize_json), [`escape_json`](super::escape_json) | the same for JSON |
//! | [`is_visible`] | filter single characters of names and addresses |

use std::{borrow::Cow, fmt};

/// A run of this many unsafe characters is taken for an encoded message.
const MIN_MESSAGE_CHARS: usize = 8;
/// The tag characters that follow the black flag in the flags of England, Scotland and Wales.
const FLAG_TAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// Why characters are unsafe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnsafeKind {
    /// Tag characters: an invisible alphabet that models read.
    Tag,
    /// Overrides of the writing direction: people and models read different words.
    Override,
    /// Embeddings, isolates and direction marks.
    Direction,
    /// Zero-width spaces, misplaced joiners, soft hyphens.
    ZeroWidth,
    /// Variation selectors after characters without variants.
    Selector,
    /// Letters without a glyph, such as the Hangul fillers.
    Blank,
    /// A terminal escape sequence.
    Escape,
    /// Any other control character or noncharacter.
    Control,
}

impl fmt::Display for UnsafeKind {
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

/// A range of a text that is unsafe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsafeSpan {
    /// Why it is unsafe.
    pub kind: UnsafeKind,
    /// The byte at which it starts.
    pub start: usize,
    /// The byte after its end.
    pub end: usize,
}

/// The unsafe spans of `text`, in order. Line feeds, tabs and carriage returns before a line feed are safe.
pub fn find_unsafe(text: &str) -> Vec<UnsafeSpan> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Vec::new();
    }
    let mut scanner = Scanner { text, right_to_left: None, spans: Vec::new() };
    let mut letters = text.char_indices();
    // The character before this one, unless it is unsafe: a character that is removed cannot make the next one safe.
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
            scanner.push(UnsafeKind::Escape, start, text.len() - letters.as_str().len());
            before = None;
        } else if let Some(kind) = scanner.kind_in_context(before, letter, rest) {
            scanner.push(kind, start, start + letter.len_utf8());
            before = None;
        } else {
            before = Some(letter);
        }
    }
    scanner.spans
}

/// The text without its unsafe spans, and these spans.
pub fn sanitize(text: &str) -> (Cow<'_, str>, Vec<UnsafeSpan>) {
    replace_unsafe(text, |_, _| {})
}

/// The text with unsafe characters written as `\u{…}`. A terminal escape stays readable: only what introduces it is
/// escaped.
pub fn escape_unsafe(text: &str) -> Cow<'_, str> {
    replace_unsafe(text, |output, unsafe_text| {
        unsafe_text.chars().for_each(|letter| push_escaped(output, letter));
    })
    .0
}

/// [`escape_unsafe`] for text that arrives in chunks. Zero-width spaces and direction marks are always escaped, because the
/// script of the whole text is not known.
#[derive(Debug, Default)]
pub struct ChunkEscaper(ChunkContext);

impl ChunkEscaper {
    /// The next part of the text, escaped. Its last character may only be part of what the next chunk returns.
    pub fn escape(&mut self, chunk: &str) -> String {
        self.0.replace_unsafe(chunk, |output, letter| output.extend(letter.escape_unicode()))
    }
}

/// [`sanitize`] for text that arrives in chunks. Zero-width spaces and direction marks are always removed, and of a terminal
/// escape only what introduces it.
#[derive(Debug, Default)]
pub struct ChunkSanitizer(ChunkContext);

impl ChunkSanitizer {
    /// The next part of the text, sanitized. Its last character may only be part of what the next chunk returns.
    pub fn sanitize(&mut self, chunk: &str) -> String {
        self.0.replace_unsafe(chunk, |_, _| {})
    }
}

/// What of earlier chunks decides about the next characters.
#[derive(Debug, Default)]
struct ChunkContext {
    /// The last character of the chunks so far, unless it was unsafe.
    before: Option<char>,
    /// A joiner or carriage return at the end of the chunks so far: the next character decides about it.
    undecided: Option<char>,
}

impl ChunkContext {
    fn replace_unsafe(&mut self, chunk: &str, replace: impl Fn(&mut String, char)) -> String {
        let text: String = self.undecided.take().into_iter().chain(chunk.chars()).collect();
        let mut output = String::with_capacity(text.len());
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let rest = letters.as_str();
            let is_safe = match classify(letter) {
                Class::Joiner | Class::LineBreak if rest.is_empty() && !matches!(letter, '\n' | '\t') => {
                    self.undecided = Some(letter);
                    break;
                }
                Class::LineBreak => letter != '\r' || rest.starts_with('\n'),
                Class::Joiner => is_joining(self.before, letter, rest),
                Class::Selector => self.before.is_some_and(|before| has_selectable_variant(before, letter)),
                Class::Safe => true,
                Class::Unsafe(_) | Class::WordSpace | Class::DirectionMark => false,
            };
            if is_safe {
                output.push(letter);
            } else {
                replace(&mut output, letter);
            }
            self.before = is_safe.then_some(letter);
        }
        output
    }
}

/// Whether a character is visible or a space, whatever stands around it. The strictest rule, for names, addresses and
/// other short technical texts.
pub fn is_visible(letter: char) -> bool {
    classify(letter) == Class::Safe
}

/// Whether unsafe spans can only be an attack: tags, direction overrides, or a run long enough to be a message.
pub fn is_attack(spans: &[UnsafeSpan]) -> bool {
    let is_invisible = |span: &&UnsafeSpan| !matches!(span.kind, UnsafeKind::Escape | UnsafeKind::Control);
    let mut run = 0;
    let mut end = None;
    spans.iter().filter(is_invisible).any(|span| {
        run = if end == Some(span.start) { run + 1 } else { 1 };
        end = Some(span.end);
        matches!(span.kind, UnsafeKind::Tag | UnsafeKind::Override) || run >= MIN_MESSAGE_CHARS
    })
}

fn replace_unsafe(text: &str, mut write: impl FnMut(&mut String, &str)) -> (Cow<'_, str>, Vec<UnsafeSpan>) {
    let spans = find_unsafe(text);
    if spans.is_empty() {
        return (Cow::Borrowed(text), spans);
    }
    let mut output = String::with_capacity(text.len());
    let mut copied = 0;
    for span in &spans {
        output.push_str(text.get(copied..span.start).unwrap_or_default());
        write(&mut output, text.get(span.start..span.end).unwrap_or_default());
        copied = span.end;
    }
    output.push_str(text.get(copied..).unwrap_or_default());
    (Cow::Owned(output), spans)
}

fn push_escaped(output: &mut String, letter: char) {
    match letter {
        ' '..='~' => output.push(letter),
        _ => output.extend(letter.escape_unicode()),
    }
}

/// How many characters after its first belong to a terminal escape: all of `[31m` in `ESC [31m`, the `c` of `ESC c`, and
/// only the `]` of `ESC ] … BEL`.
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
        // The string that follows, which a terminal would not show, stays readable.
        Some(']' | 'P' | '_' | '^' | 'X') => taken,
        Some(' '..='~') => taken,
        _ => 0,
    }
}

/// What a character is by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Safe,
    /// A line feed, tab, carriage return or Unicode line separator.
    LineBreak,
    /// Safe where a script or an emoji needs it.
    Joiner,
    /// A zero-width space: safe in scripts that do not separate words.
    WordSpace,
    /// Safe in right-to-left text.
    DirectionMark,
    /// Safe after a character that has this variant.
    Selector,
    Unsafe(UnsafeKind),
}

/// The table of unsafe characters.
fn classify(letter: char) -> Class {
    match letter {
        ' '..='~' => Class::Safe,
        '\n' | '\t' | '\r' | '\u{2028}' | '\u{2029}' => Class::LineBreak,
        '\u{1b}' | '\u{9b}' => Class::Unsafe(UnsafeKind::Escape),
        _ if letter.is_control() => Class::Unsafe(UnsafeKind::Control),
        '\u{fdd0}'..='\u{fdef}' | '\u{fff9}'..='\u{fffb}' => Class::Unsafe(UnsafeKind::Control),
        _ if u32::from(letter) & 0xfffe == 0xfffe => Class::Unsafe(UnsafeKind::Control),
        '\u{200c}' | '\u{200d}' => Class::Joiner,
        '\u{200b}' => Class::WordSpace,
        '\u{ad}'
        | '\u{34f}'
        | '\u{180e}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{feff}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{1bca0}'..='\u{1bca3}' => Class::Unsafe(UnsafeKind::ZeroWidth),
        '\u{61c}' | '\u{200e}' | '\u{200f}' => Class::DirectionMark,
        '\u{202d}' | '\u{202e}' => Class::Unsafe(UnsafeKind::Override),
        '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}' => Class::Unsafe(UnsafeKind::Direction),
        '\u{fe00}'..='\u{fe0f}' | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{e0100}'..='\u{e01ef}' => {
            Class::Selector
        }
        '\u{e0000}'..='\u{e0fff}' => Class::Unsafe(UnsafeKind::Tag),
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' => {
            Class::Unsafe(UnsafeKind::Blank)
        }
        _ => Class::Safe,
    }
}

struct Scanner<'a> {
    text: &'a str,
    /// Whether the text has right-to-left letters, computed when first needed.
    right_to_left: Option<bool>,
    spans: Vec<UnsafeSpan>,
}

impl Scanner<'_> {
    fn push(&mut self, kind: UnsafeKind, start: usize, end: usize) {
        self.spans.push(UnsafeSpan { kind, start, end });
    }

    /// Why a character is unsafe where it stands, if it is.
    fn kind_in_context(&mut self, before: Option<char>, letter: char, rest: &str) -> Option<UnsafeKind> {
        let (is_safe, kind) = match classify(letter) {
            Class::Safe => return None,
            Class::Unsafe(kind) => return Some(kind),
            Class::LineBreak => (letter != '\r' || rest.starts_with('\n'), UnsafeKind::Control),
            Class::Joiner => (is_joining(before, letter, rest), UnsafeKind::ZeroWidth),
            Class::WordSpace => (before.is_some_and(is_unspaced_script), UnsafeKind::ZeroWidth),
            Class::DirectionMark => {
                // A sequence of marks could encode a message.
                let is_first = before.is_some_and(|before| classify(before) != Class::DirectionMark);
                (is_first && self.is_right_to_left(), UnsafeKind::Direction)
            }
            Class::Selector => {
                (before.is_some_and(|before| has_selectable_variant(before, letter)), UnsafeKind::Selector)
            }
        };
        (!is_safe).then_some(kind)
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

/// Whether a joiner or non-joiner stands where writing needs it: inside an emoji, or after a letter whose form depends on
/// the next letter.
fn is_joining(before: Option<char>, joiner: char, rest: &str) -> bool {
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

fn is_unspaced_script(letter: char) -> bool {
    matches!(letter, '\u{e01}'..='\u{fff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17ff}'
        | '\u{1950}'..='\u{1aad}')
}

fn is_pictograph(letter: char) -> bool {
    matches!(letter, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{2460}'..='\u{24ff}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// Whether this variation selector can change the character before it. Apart from Mongolian, a character has at most two
/// variants, so that a selector hides no more than one bit.
fn has_selectable_variant(before: char, selector: char) -> bool {
    match selector {
        // The text and the emoji form.
        '\u{fe0e}' | '\u{fe0f}' => is_pictograph(before) || matches!(before, '#' | '*' | '0'..='9'),
        // Forms of mathematical symbols and of letters.
        '\u{fe00}' if has_standard_variant(before) => true,
        // Corner-justified and centred forms of East Asian punctuation.
        '\u{fe00}' | '\u{fe01}' => {
            matches!(before, '\u{2018}'..='\u{201d}' | '\u{3001}' | '\u{3002}' | '\u{ff01}'..='\u{ff1f}')
        }
        '\u{180b}'..='\u{180f}' => matches!(before, '\u{1820}'..='\u{18aa}'),
        _ => false,
    }
}

fn has_standard_variant(letter: char) -> bool {
    matches!(letter, '\u{2200}'..='\u{22ff}' | '\u{2a00}'..='\u{2aff}' | '\u{1000}'..='\u{109f}' | '\u{a856}'..='\u{a85c}')
}

#[cfg(test)]
#[path = "unsafe_characters_tests.rs"]
mod tests;
