//! Under which names tools are offered: short enough for every client, one for each, the same tomorrow.
//!
//! A tool keeps its own name. Whoever shares a name with a preferred tool without being its equal is called
//! `server.tool`. A name that is too long, holds what clients do not take, or would be another's too is cut, cleaned and
//! ends in a dot and eight letters that follow from the tool and its source alone. Every name that is not a tool's own
//! has a dot in it, so a name without one needs no table to be understood. A name that two could have belongs to
//! neither: nobody inherits the calls that were meant for somebody else.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use toolyard_core::{ContentHash, SourceId};

/// Many clients break on longer names.
pub const LONGEST_NAME: usize = 64;
/// The names of the tools that stand for all others; nobody else is offered under them.
pub const RESERVED: [&str; 3] = [SEARCH_TOOLS, DESCRIBE_TOOL, CALL_TOOL];
/// Finds tools.
pub const SEARCH_TOOLS: &str = "search_tools";
/// Shows one tool.
pub const DESCRIBE_TOOL: &str = "describe_tool";
/// Calls one tool.
pub const CALL_TOOL: &str = "call_tool";

/// How many letters tell names apart that would be the same.
const LETTERS: usize = 8;
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// After so many rounds somebody is making names that clash on purpose, and the rest is counted.
const ROUNDS: u8 = 16;

/// A tool that needs a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wanted {
    /// What its source calls it.
    pub tool: Arc<str>,
    /// The source, unless the tool is the one that its name alone means.
    pub source: Option<SourceId>,
    /// The source by which it is called where its own name is reserved.
    pub preferred: SourceId,
}

/// Whether clients take a name as it is.
pub fn is_plain(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_plain_byte)
}

fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// A name for each, in the same order. The order does not matter for the names, nor do tools that no name is shared with.
pub fn offered_names(wanted: &[Wanted]) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = wanted.iter().map(first_choice).collect();
    let mut refused: HashSet<Arc<str>> = HashSet::new();
    let mut round = vec![0_u8; wanted.len()];
    while let Some(clashing) = clashes(&names, &mut refused) {
        for at in clashing {
            let (Some(name), Some(wanted), Some(round)) =
                (names.get_mut(at), wanted.get(at), round.get_mut(at))
            else {
                continue;
            };
            *round = round.saturating_add(1);
            if *round >= ROUNDS {
                return counted(wanted_names(&names), &refused);
            }
            *name = told_apart(wanted, *round);
        }
    }
    names
}

/// Those whose name somebody else has too, or was refused before; what they share is refused from now on.
fn clashes(names: &[Arc<str>], refused: &mut HashSet<Arc<str>>) -> Option<Vec<usize>> {
    let mut first: HashMap<&Arc<str>, usize> = HashMap::with_capacity(names.len());
    let mut clashing: HashSet<usize> = HashSet::new();
    for (at, name) in names.iter().enumerate() {
        if refused.contains(name) {
            clashing.insert(at);
        }
        if let Some(before) = first.insert(name, at) {
            clashing.extend([before, at]);
        }
    }
    if clashing.is_empty() {
        return None;
    }
    refused.extend(clashing.iter().filter_map(|at| names.get(*at)).map(Arc::clone));
    Some(clashing.into_iter().collect())
}

fn wanted_names(names: &[Arc<str>]) -> Vec<(usize, Arc<str>)> {
    let mut numbered: Vec<(usize, Arc<str>)> = names.iter().map(Arc::clone).enumerate().collect();
    numbered.sort_by(|one, other| one.1.cmp(&other.1));
    numbered
}

/// Names told apart by counting, when nothing else did.
fn counted(numbered: Vec<(usize, Arc<str>)>, refused: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
    let own: HashSet<Arc<str>> = numbered.iter().map(|(_, name)| Arc::clone(name)).collect();
    let mut used: HashSet<Arc<str>> = HashSet::with_capacity(numbered.len());
    let mut names: Vec<(usize, Arc<str>)> = Vec::with_capacity(numbered.len());
    for (at, name) in numbered {
        let mut chosen = Arc::clone(&name);
        let mut count = 0_usize;
        while refused.contains(&chosen) || used.contains(&chosen) || (count > 0 && own.contains(&chosen)) {
            count += 1;
            chosen = with_end(&name, &count.to_string());
        }
        used.insert(Arc::clone(&chosen));
        names.push((at, chosen));
    }
    names.sort_by_key(|(at, _)| *at);
    names.into_iter().map(|(_, name)| name).collect()
}

/// The tool's own name or `server.tool`, if clients take it.
fn first_choice(wanted: &Wanted) -> Arc<str> {
    let reserved = RESERVED.contains(&&*wanted.tool);
    match &wanted.source {
        None if !reserved && is_plain(&wanted.tool) => Arc::clone(&wanted.tool),
        None if !reserved => told_apart(wanted, 0),
        source => {
            let name = format!("{}.{}", source.as_ref().unwrap_or(&wanted.preferred), wanted.tool);
            if is_plain(&name) { name.into() } else { told_apart(wanted, 0) }
        }
    }
}

/// As much of the name as fits, and letters that only this tool of this source has.
fn told_apart(wanted: &Wanted, round: u8) -> Arc<str> {
    let source = wanted.source.as_ref().map_or("", SourceId::as_str);
    let hash = ContentHash::of_parts([wanted.tool.as_bytes(), source.as_bytes(), &[round]]);
    let letter = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).map(|letter| char::from(*letter));
    let letters: String = hash.as_bytes().iter().filter_map(letter).take(LETTERS).collect();
    match source {
        "" => with_end(&wanted.tool, &letters),
        source => with_end(&format!("{source}.{}", wanted.tool), &letters),
    }
}

/// The beginning of a name, made plain, and what it ends in behind a dot.
fn with_end(name: &str, end: &str) -> Arc<str> {
    let room = LONGEST_NAME.saturating_sub(end.len() + 1);
    let plain = |letter: char| match u8::try_from(letter) {
        Ok(byte) if is_plain_byte(byte) => letter,
        _ => '_',
    };
    let mut kept: String = name.chars().map(plain).take(room).collect();
    kept.push('.');
    kept.push_str(end);
    kept.into()
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
