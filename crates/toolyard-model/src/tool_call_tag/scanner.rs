//! Walks over a text once and tells calls from everything else.

use std::cell::Cell;

use super::{
    TextCall, TextCalls, block,
    loose_json::{Brackets, Fault, read_value},
    named, python,
    shape::{Shape, Standing, shape},
    surroundings::{Rest, Surroundings},
    tagged,
    token::{Kind, Tag, Token, find, read_tag},
};

/// What stands at the front of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    /// It cannot be told before more of the text is there.
    Wait,
    /// So many bytes of text.
    Text(usize),
    /// So many bytes of an example, which are text as well.
    Example(usize),
    /// So many bytes of a block that is no part of a paragraph: code, data.
    Block(usize),
    /// So many bytes that are not for anybody's eyes.
    Nothing(usize),
    /// Calls, and how long they are.
    Calls(usize, Vec<TextCall>),
    /// A call that cannot be read.
    Unreadable(usize),
    /// The text ends within a call.
    CutOff(usize),
    /// Everything before was a thought.
    EndOfThought(usize),
    /// Nothing counts from here on.
    Stop,
}

/// Walks over a text, in one piece or in several.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    place: Surroundings,
    found: TextCalls,
    rest: Rest,
    is_stopped: bool,
    /// Whether this is the inside of a block that holds nothing but calls.
    standing: Option<Standing>,
}

/// What a scanner needs to know of the world.
#[derive(Clone, Copy)]
pub(super) struct Knowledge<'a> {
    pub is_tool: &'a dyn Fn(&str) -> bool,
    /// Whether this is all of the text.
    pub is_final: bool,
    /// How many calls were read to the end of the text without ending themselves.
    pub endless: &'a Cell<u32>,
}

impl Scanner {
    /// A scanner for the inside of a block.
    pub(super) fn inside(standing: Standing) -> Self {
        let place = Surroundings::in_block();
        Self { standing: Some(standing), place, ..Self::default() }
    }

    /// Goes as far as can be told; gives how many bytes it used.
    pub(super) fn run(&mut self, text: &str, known: Knowledge<'_>) -> usize {
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let found = if self.is_stopped { Found::Nothing(rest.len()) } else { self.look(rest, known) };
            let Some(used) = self.take(found, rest) else { break };
            at += used;
        }
        at
    }

    /// What can be shown since the last time.
    pub(super) fn shown(&mut self) -> String {
        self.rest.take()
    }

    /// Whether something was found that is no text.
    pub(super) fn has_found(&self) -> bool {
        !self.found.calls.is_empty() || !self.found.unreadable.is_empty() || self.found.cut_off
    }

    /// What was found, without the text.
    pub(super) fn into_found(self) -> TextCalls {
        self.found
    }

    /// Takes in what was found; none to wait.
    fn take(&mut self, found: Found, text: &str) -> Option<usize> {
        let part = |used: usize| text.get(..used.min(text.len())).unwrap_or(text);
        let used = match found {
            Found::Wait => return None,
            Found::Text(used) | Found::Example(used) | Found::Block(used) => {
                let used = used.max(1);
                let part = part(used);
                self.rest.push(part);
                match found {
                    Found::Example(_) => self.place.pass_example(part),
                    Found::Block(_) => self.place.pass_block(part),
                    _ => self.place.pass(part),
                }
                used
            }
            Found::Nothing(used) => {
                self.rest.gap();
                used
            }
            Found::Calls(used, calls) => {
                self.found.calls.extend(calls);
                self.gone(part(used));
                used
            }
            Found::Unreadable(used) => {
                self.found.unreadable.push(part(used).trim().to_owned());
                self.gone(part(used));
                used
            }
            Found::CutOff(used) => {
                self.found.cut_off = true;
                self.gone(part(used));
                used
            }
            Found::EndOfThought(used) => {
                self.found.calls.clear();
                self.found.unreadable.clear();
                self.gone(part(used));
                used
            }
            Found::Stop => {
                self.is_stopped = true;
                text.len()
            }
        };
        Some(used.min(text.len()))
    }

    fn gone(&mut self, text: &str) {
        self.rest.gap();
        self.place.pass_call(text);
    }

    fn look(&mut self, text: &str, known: Knowledge<'_>) -> Found {
        if self.place.is_line_quoted {
            return Found::Text(text.find('\n').map_or(text.len(), |end| end + 1));
        }
        if self.place.at_line_start
            && let Some(found) = self.look_at_line(text, known)
        {
            return found;
        }
        match text.as_bytes().first() {
            Some(b'`') => block::backticks(text, &self.place, known),
            Some(b'<') => self.look_at_tag(text, known),
            Some(b'{') => self.look_at_json(text, known),
            Some(b'[') => self.look_at_bracket(text, known),
            _ => {
                let is_mark = |byte: &u8| matches!(byte, b'\n' | b'`' | b'<' | b'{' | b'[');
                let mark = text.bytes().position(|byte| is_mark(&byte)).unwrap_or(text.len());
                // A line feed ends the run, so that the next line is looked at from its beginning.
                let with_line_feed = text.as_bytes().get(mark) == Some(&b'\n');
                Found::Text(mark + usize::from(with_line_feed))
            }
        }
    }

    /// What only the beginning of a line can be.
    fn look_at_line(&mut self, text: &str, known: Knowledge<'_>) -> Option<Found> {
        let blanks = text.len() - text.trim_start_matches([' ', '\t']).len();
        let line = text.get(blanks..).unwrap_or_default();
        if line.is_empty() && !known.is_final {
            return Some(Found::Wait);
        }
        if line.starts_with('>') || (!line.starts_with('\n') && self.place.is_indented_code(text)) {
            self.place.is_line_quoted = true;
            return Some(Found::Text(text.find('\n').map_or(text.len(), |end| end + 1)));
        }
        if blanks > 0 {
            return Some(Found::Text(blanks));
        }
        if line.starts_with('~') {
            return block::tildes(line, &self.place, known);
        }
        if line.starts_with('O') && !self.found.calls.is_empty() {
            // What a tool answered, invented.
            if line.starts_with("Observation:") {
                return Some(Found::Stop);
            }
            if "Observation:".starts_with(line) && !known.is_final {
                return Some(Found::Wait);
            }
        }
        if line.starts_with('A')
            && let Some(found) = named::action(line, known)
        {
            return Some(if self.place.is_block_example() { as_example(found) } else { found });
        }
        if self.place.at_start || self.standing.is_some() {
            return python::whole(line, self.standing, known);
        }
        None
    }

    fn look_at_tag(&self, text: &str, known: Knowledge<'_>) -> Found {
        let token = match read_tag(text, known.is_final) {
            Tag::Wait => return Found::Wait,
            Tag::Nothing => return Found::Text(1),
            Tag::Is(token) => token,
        };
        let len = token.len;
        match token.kind {
            Kind::Call | Kind::Function => {
                let found = match token.kind {
                    Kind::Call => tagged::call(text, &token, self.place.at_line_start, known),
                    _ => named::function(text, &token, known),
                };
                if self.place.is_tagged_example() { as_example(found) } else { found }
            }
            Kind::CallEnd if self.found.calls.is_empty() && self.found.unreadable.is_empty() => {
                Found::Text(len)
            }
            Kind::CallEnd | Kind::Noise => Found::Nothing(len),
            Kind::Part => Found::Text(len),
            Kind::Thought if self.place.at_line_start => thought(text, &token, known),
            Kind::Thought => Found::Text(len),
            Kind::ThoughtEnd => Found::EndOfThought(len),
            Kind::Result if !self.found.calls.is_empty() && self.place.at_line_start => Found::Stop,
            Kind::Result => {
                skip_to(text, len, known, |token| (token.kind == Kind::ResultEnd).then_some(token.len))
            }
            Kind::ResultEnd => Found::Text(len),
            Kind::TurnEnd if self.place.at_start && self.found.calls.is_empty() => Found::Nothing(len),
            Kind::TurnEnd => Found::Stop,
            Kind::Channel => named::channel(text, known),
            // One that does not end hides everything, as it does for browsers.
            Kind::Comment => match text.find("-->") {
                Some(end) => Found::Text(end + 3),
                None if known.is_final => Found::Text(text.len()),
                None => Found::Wait,
            },
        }
    }

    /// An object that stands by itself may be a call, if it names a tool.
    fn look_at_json(&self, text: &str, known: Knowledge<'_>) -> Found {
        let is_free = self.place.at_line_start
            || self
                .place
                .last
                .is_none_or(|c| c.is_whitespace() || matches!(c, ':' | '：' | '。' | ')' | '）'));
        let inner = text.get(1..).unwrap_or_default().trim_start();
        let begins = match text.as_bytes().first() {
            Some(b'[') => inner.starts_with('{'),
            _ => inner.starts_with(['"', '\'', '“']) || inner.starts_with(|c: char| c.is_ascii_alphabetic()),
        };
        if !is_free {
            return Found::Text(1);
        }
        if inner.is_empty() && !known.is_final {
            return Found::Wait;
        }
        if !begins {
            return Found::Text(1);
        }
        let standing = self.standing.unwrap_or(Standing::Untagged);
        match read_value(text, Brackets::Closed) {
            Ok((value, used)) => match shape(&value, standing, known.is_tool) {
                Shape::Calls(_) if self.place.is_block_example() => Found::Example(used),
                Shape::Calls(calls) => Found::Calls(used, calls),
                // Whatever stands within data is data.
                Shape::Example | Shape::Other => Found::Text(used),
            },
            Err(Fault::Incomplete) if !known.is_final => Found::Wait,
            Err(Fault::Incomplete) if names_tool(text, known) && !self.place.is_block_example() => {
                Found::CutOff(text.len())
            }
            Err(Fault::Incomplete) => Found::Text(text.len()),
            Err(Fault::Invalid(at)) => Found::Text(at.max(1)),
        }
    }

    fn look_at_bracket(&self, text: &str, known: Knowledge<'_>) -> Found {
        match named::bracket_token(text, known.is_final) {
            Some(Found::Text(len)) => {
                let found = tagged::after_bracket(text, len, known);
                if self.place.is_tagged_example() { as_example(found) } else { found }
            }
            Some(Found::Nothing(_)) if self.found.calls.is_empty() => Found::Text(1),
            Some(found) => found,
            None => self.look_at_json(text, known),
        }
    }
}

/// The same as words that are only shown.
pub(super) fn as_example(found: Found) -> Found {
    match found {
        Found::Nothing(used) | Found::Calls(used, _) | Found::Unreadable(used) | Found::CutOff(used) => {
            Found::Example(used)
        }
        other => other,
    }
}

/// A thought, up to its end; all the rest if it has none.
fn thought(text: &str, open: &Token, known: Knowledge<'_>) -> Found {
    let end = find(text.get(open.len..).unwrap_or_default(), |token| {
        (token.kind == Kind::ThoughtEnd && token.word == open.word).then_some(token.len)
    });
    match end {
        Some((at, len)) => Found::Nothing(open.len + at + len),
        None if known.is_final => Found::Nothing(text.len()),
        None => Found::Wait,
    }
}

/// Everything up to the token that ends it is text, and nothing in it counts.
fn skip_to(text: &str, from: usize, known: Knowledge<'_>, ends: impl Fn(&Token) -> Option<usize>) -> Found {
    match find(text.get(from..).unwrap_or_default(), ends) {
        Some((at, len)) => Found::Text(from + at + len),
        None if known.is_final => Found::Text(text.len()),
        None => Found::Wait,
    }
}

/// Whether a call that is cut off got as far as naming a tool.
pub(super) fn names_tool(text: &str, known: Knowledge<'_>) -> bool {
    let start: String = text.chars().take(400).collect();
    ["\"name\"", "\"tool_name\"", "\"tool\"", "\"function\"", "\"action\""].iter().any(|field| {
        let Some((_, after)) = start.split_once(field) else { return false };
        let name = after.trim_start().trim_start_matches(':').trim_start().strip_prefix('"');
        name.and_then(|name| name.split('"').next()).is_some_and(known.is_tool)
    })
}
