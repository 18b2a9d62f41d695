//! Code in a text: what stands between backticks is quoted, unless it is a block of nothing but calls.

use std::cell::Cell;

use super::{
    example,
    scanner::{Found, Knowledge, Scanner},
    shape::Standing,
    surroundings::Surroundings,
};

/// Blocks in these languages may hold calls; what the model calls them tells no more than that it set them off.
const DATA: [&str; 12] =
    ["", "json", "json5", "jsonc", "jsonl", "ndjson", "xml", "text", "txt", "plaintext", "plain", "python"];
/// Blocks of these kinds are calls.
const CALLS: [&str; 13] = [
    "tool_call",
    "tool_calls",
    "toolcall",
    "tool",
    "tools",
    "tool_code",
    "tool_use",
    "function_call",
    "function_calls",
    "function",
    "call",
    "action",
    "tool-call",
];
/// No run of backticks that means anything is longer.
const LONGEST_RUN: usize = 16;

/// What a backtick begins.
pub(super) fn backticks(text: &str, place: &Surroundings, known: Knowledge<'_>) -> Found {
    let run = text.len() - text.trim_start_matches('`').len();
    if run == text.len() && !known.is_final {
        return Found::Wait;
    }
    if run > LONGEST_RUN {
        return Found::Text(run);
    }
    if run >= 3 {
        return fence(text, run, '`', place, known);
    }
    // Inline code ends within its paragraph, or it is none.
    match closing_run(text, run) {
        // The run may still grow, and then it is another.
        Closing::At(end) if end == text.len() && !known.is_final => Found::Wait,
        Closing::At(end) => Found::Text(end),
        Closing::Nowhere => Found::Text(run),
        Closing::NotYet if known.is_final => Found::Text(run),
        Closing::NotYet => Found::Wait,
    }
}

/// A block between tildes, if that is one.
pub(super) fn tildes(text: &str, place: &Surroundings, known: Knowledge<'_>) -> Option<Found> {
    let run = text.len() - text.trim_start_matches('~').len();
    if run == text.len() && !known.is_final {
        return Some(Found::Wait);
    }
    (run >= 3).then(|| fence(text, run, '~', place, known))
}

/// Where inline code ends.
enum Closing {
    At(usize),
    /// Its paragraph ends before it does.
    Nowhere,
    /// The text ends before that can be told.
    NotYet,
}

/// Finds the run of exactly so many backticks that ends what begins with one.
fn closing_run(text: &str, run: usize) -> Closing {
    let bytes = text.as_bytes();
    let mut at = run;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'`', b'\n', rest)) {
        let start = at + found;
        let rest = bytes.get(start..).unwrap_or_default();
        if rest.first() == Some(&b'\n') {
            // A line without anything ends the paragraph.
            let blanks = rest.iter().skip(1).take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
            if rest.get(1 + blanks) == Some(&b'\n') {
                return Closing::Nowhere;
            }
            at = start + 1;
            continue;
        }
        let length = rest.iter().take_while(|byte| **byte == b'`').count();
        if length == run {
            return Closing::At(start + length);
        }
        at = start + length;
    }
    Closing::NotYet
}

/// A block that is set off by a run of marks.
fn fence(text: &str, run: usize, mark: char, place: &Surroundings, known: Knowledge<'_>) -> Found {
    let after = text.get(run..).unwrap_or_default();
    let Some(line_end) = memchr::memchr2(b'\n', b'`', after.as_bytes()) else {
        return if known.is_final { Found::Text(run) } else { Found::Wait };
    };
    let line = after.get(..line_end).unwrap_or_default();
    if after.as_bytes().get(line_end) == Some(&b'`') {
        return match closing_run(text, run) {
            _ if mark != '`' => Found::Text(run),
            Closing::At(end) if end == text.len() && !known.is_final => Found::Wait,
            Closing::At(end) => one_line(text, run, end, place, known),
            Closing::NotYet if !known.is_final => Found::Wait,
            Closing::NotYet | Closing::Nowhere => Found::Text(run),
        };
    }
    let info = line.trim();
    let from = run + line_end + 1;
    let word = language(info);
    let may_end_anywhere = CALLS.contains(&word.as_str()) || word.starts_with("json") || word.is_empty();
    let Some((content_end, end)) = closing_line(text, from, run, mark, may_end_anywhere) else {
        if !known.is_final {
            return Found::Wait;
        }
        let content = text.get(from..).unwrap_or_default();
        return judge(info, content, text.len(), place, known, "");
    };
    let Some(next) = next_line(text.get(end..).unwrap_or_default(), known.is_final) else {
        return Found::Wait;
    };
    judge(info, text.get(from..content_end).unwrap_or_default(), end, place, known, next)
}

fn language(info: &str) -> String {
    info.split([' ', '{', ',']).next().unwrap_or_default().to_ascii_lowercase()
}

/// Where a block's content ends, and where the block does. In data the marks may stand at the end of the last line.
fn closing_line(text: &str, from: usize, run: usize, mark: char, anywhere: bool) -> Option<(usize, usize)> {
    let mut at = from;
    for line in text.get(from..)?.split_inclusive('\n') {
        let bare = line.trim_end();
        let marks = bare.len() - bare.trim_end_matches(mark).len();
        let content = bare.get(..bare.len() - marks).unwrap_or_default();
        if marks >= run && (anywhere || content.trim().is_empty()) {
            return Some((at + content.len(), at + bare.len()));
        }
        at += line.len();
    }
    None
}

/// The next line that is not blank; none if it is not there yet.
fn next_line(text: &str, is_final: bool) -> Option<&str> {
    let trimmed = text.trim_start();
    match trimmed.find('\n') {
        Some(end) => trimmed.get(..end),
        None if is_final => Some(trimmed),
        None => None,
    }
}

/// A block on one line: the first word may be its language.
fn one_line(text: &str, run: usize, end: usize, place: &Surroundings, known: Knowledge<'_>) -> Found {
    let inside = text.get(run..end - run).unwrap_or_default();
    let word = inside.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inside.len());
    let (info, content) = inside.split_at(word);
    if !place.at_line_start {
        return Found::Text(end);
    }
    let Some(next) = next_line(text.get(end..).unwrap_or_default(), known.is_final) else {
        return Found::Wait;
    };
    judge(info, content, end, place, known, next)
}

/// Whether a block is calls: if it may hold some, holds nothing else, and nobody calls it an example.
fn judge(
    info: &str,
    content: &str,
    used: usize,
    place: &Surroundings,
    known: Knowledge<'_>,
    next_line: &str,
) -> Found {
    let standing = match language(info).as_str() {
        _ if place.is_in_block => return Found::Block(used),
        word if CALLS.contains(&word) => Standing::Tagged,
        word if DATA.contains(&word) => Standing::Untagged,
        _ => return Found::Block(used),
    };
    if info.to_ascii_lowercase().contains("example")
        || place.is_block_example()
        || example::points_back(next_line)
    {
        return Found::Example(used);
    }
    let mut inside = Scanner::inside(standing);
    let endless = Cell::new(0);
    let known = Knowledge { is_final: true, endless: &endless, ..known };
    inside.run(content, known);
    let rest = inside.shown();
    let is_comment = |line: &str| line.starts_with("//") || (info == "python" && line.starts_with("# "));
    let only_calls = rest.lines().all(|line| line.trim().is_empty() || is_comment(line.trim()));
    let found = inside.into_found();
    let registered = found.calls.iter().all(|call| (known.is_tool)(&call.name));
    if !only_calls || (standing == Standing::Untagged && !registered) {
        return Found::Block(used);
    }
    match found {
        found if found.cut_off => Found::CutOff(used),
        found if !found.unreadable.is_empty() => Found::Unreadable(used),
        found if found.calls.is_empty() => Found::Block(used),
        found => Found::Calls(used, found.calls),
    }
}
