//! Assigns exposed names to tools: unique, stable, and valid for every client.
//!
//! A tool keeps its own name if it can. A tool that shares its name with a preferred one and is not equivalent to it becomes
//! `server.tool`. A name that is too long, has characters that clients reject, or clashes with another name is shortened,
//! cleaned and ends in a dot and eight letters that depend on the tool and its source alone. Every name that is not the tool's
//! own contains a dot, so a name without one needs no lookup. A name that two tools could have goes to neither: names are
//! never reassigned to another tool.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use toolyard_core::{ContentHash, SourceId};

/// Many clients reject longer names.
pub(crate) const MAX_NAME_BYTES: usize = 64;
/// Names of the search surface's own tools; no other tool is exposed under them.
pub(crate) const RESERVED_NAMES: [&str; 3] = [SEARCH_TOOLS, DESCRIBE_TOOL, CALL_TOOL];
pub(crate) const SEARCH_TOOLS: &str = "search_tools";
pub(crate) const DESCRIBE_TOOL: &str = "describe_tool";
pub(crate) const CALL_TOOL: &str = "call_tool";

/// Length of the suffix that distinguishes clashing names.
const SUFFIX_LETTERS: usize = 8;
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// If names still clash after this many rounds, somebody chose them to clash, and they are numbered instead.
const MAX_ROUNDS: u8 = 16;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UnnamedTool {
    pub(crate) tool: Arc<str>,
    /// Its source; none for the preferred tool of its name, which needs no source in its name.
    pub(crate) source: Option<SourceId>,
    /// The source of the preferred tool of its name; it prefixes the name if the name is reserved.
    pub(crate) preferred_source: SourceId,
}

/// Whether every client accepts the name.
pub(crate) fn is_portable(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_portable_byte)
}

fn is_portable_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The names that [`assign_tool_names`] chose, and what later changes must know about that choice.
#[derive(Debug, Default)]
pub(crate) struct AssignedNames {
    /// In the order of the tools.
    pub(crate) names: Vec<Arc<str>>,
    /// Names that several tools could have had, which therefore none has. A tool whose [`first_choice`] is not among them has that
    /// name.
    pub(crate) rejected: HashSet<Arc<str>>,
    /// Whether the names were numbered. A numbered name depends on all other names.
    pub(crate) are_numbered: bool,
}

/// A name for each tool. The names depend neither on the order nor on tools with unrelated names.
pub(crate) fn assign_tool_names(tools: &[UnnamedTool]) -> AssignedNames {
    let mut names: Vec<Arc<str>> = tools.iter().map(first_choice).collect();
    let mut rejected: HashSet<Arc<str>> = HashSet::new();
    let mut rounds = vec![0_u8; tools.len()];
    while let Some(clashing) = find_clashes(&names, &mut rejected) {
        for index in clashing {
            let (Some(name), Some(tool), Some(round)) =
                (names.get_mut(index), tools.get(index), rounds.get_mut(index))
            else {
                continue;
            };
            *round = round.saturating_add(1);
            if *round >= MAX_ROUNDS {
                let names = numbered_names(sorted_by_name(&names), &rejected);
                return AssignedNames { names, rejected, are_numbered: true };
            }
            *name = with_suffix_letters(tool, *round);
        }
    }
    AssignedNames { names, rejected, are_numbered: false }
}

/// The names that a tool may have, in the order in which they are tried, unless names are numbered.
pub(crate) fn possible_names(tool: &UnnamedTool) -> impl Iterator<Item = Arc<str>> {
    let with_letters = (1..MAX_ROUNDS).map(move |round| with_suffix_letters(tool, round));
    std::iter::once_with(move || first_choice(tool)).chain(with_letters)
}

/// Indices of names that occur twice or were rejected before. These names are rejected from now on.
fn find_clashes(names: &[Arc<str>], rejected: &mut HashSet<Arc<str>>) -> Option<Vec<usize>> {
    let mut first_index: HashMap<&Arc<str>, usize> = HashMap::with_capacity(names.len());
    let mut clashing: HashSet<usize> = HashSet::new();
    for (index, name) in names.iter().enumerate() {
        if rejected.contains(name) {
            clashing.insert(index);
        }
        if let Some(before) = first_index.insert(name, index) {
            clashing.extend([before, index]);
        }
    }
    if clashing.is_empty() {
        return None;
    }
    rejected.extend(clashing.iter().filter_map(|index| names.get(*index)).map(Arc::clone));
    Some(clashing.into_iter().collect())
}

fn sorted_by_name(names: &[Arc<str>]) -> Vec<(usize, Arc<str>)> {
    let mut numbered: Vec<(usize, Arc<str>)> = names.iter().map(Arc::clone).enumerate().collect();
    numbered.sort_by(|one, other| one.1.cmp(&other.1));
    numbered
}

/// Makes names unique by numbers; used only if suffixes of letters do not.
fn numbered_names(sorted: Vec<(usize, Arc<str>)>, rejected: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
    let assigned_names: HashSet<Arc<str>> = sorted.iter().map(|(_, name)| Arc::clone(name)).collect();
    let mut used: HashSet<Arc<str>> = HashSet::with_capacity(sorted.len());
    let mut names: Vec<(usize, Arc<str>)> = Vec::with_capacity(sorted.len());
    for (index, name) in sorted {
        let mut unique_name = Arc::clone(&name);
        let mut count = 0_usize;
        while rejected.contains(&unique_name)
            || used.contains(&unique_name)
            || (count > 0 && assigned_names.contains(&unique_name))
        {
            count += 1;
            unique_name = with_suffix(&name, &count.to_string());
        }
        used.insert(Arc::clone(&unique_name));
        names.push((index, unique_name));
    }
    names.sort_by_key(|(index, _)| *index);
    names.into_iter().map(|(_, name)| name).collect()
}

/// The tool's own name or `server.tool`, if every client accepts it.
pub(crate) fn first_choice(tool: &UnnamedTool) -> Arc<str> {
    let is_reserved = RESERVED_NAMES.contains(&&*tool.tool);
    match &tool.source {
        None if !is_reserved && is_portable(&tool.tool) => Arc::clone(&tool.tool),
        None if !is_reserved => with_suffix_letters(tool, 0),
        source => {
            let name = format!("{}.{}", source.as_ref().unwrap_or(&tool.preferred_source), tool.tool);
            if is_portable(&name) { name.into() } else { with_suffix_letters(tool, 0) }
        }
    }
}

/// As much of the name as fits, and letters derived from the tool and its source.
fn with_suffix_letters(tool: &UnnamedTool, round: u8) -> Arc<str> {
    let source = tool.source.as_ref().map_or("", SourceId::as_str);
    let hash = ContentHash::of_parts([tool.tool.as_bytes(), source.as_bytes(), &[round]]);
    let letter = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).map(|letter| char::from(*letter));
    let letters: String = hash.as_bytes().iter().filter_map(letter).take(SUFFIX_LETTERS).collect();
    match source {
        "" => with_suffix(&tool.tool, &letters),
        source => with_suffix(&format!("{source}.{}", tool.tool), &letters),
    }
}

/// The start of a name with unsupported characters replaced, a dot, and the suffix.
fn with_suffix(name: &str, suffix: &str) -> Arc<str> {
    let available = MAX_NAME_BYTES.saturating_sub(suffix.len() + 1);
    let portable = |letter: char| match u8::try_from(letter) {
        Ok(byte) if is_portable_byte(byte) => letter,
        _ => '_',
    };
    let mut shortened: String = name.chars().map(portable).take(available).collect();
    shortened.push('.');
    shortened.push_str(suffix);
    shortened.into()
}

#[cfg(test)]
#[path = "tool_names_tests.rs"]
mod tests;
