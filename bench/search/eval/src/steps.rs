//! Tasks of several steps: parsing their text and merging their result lists.

use std::collections::HashSet;

/// The steps of a text, one per line, without their numbers.
pub(crate) fn parse_steps(text: &str) -> Vec<String> {
    text.lines().map(strip_number).filter(|step| !step.is_empty()).map(str::to_owned).collect()
}

/// A line without a leading `1.`, `2)` or the like. A number that belongs to the sentence stays.
fn strip_number(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    if rest.len() == line.len() {
        return line;
    }
    let after = rest.strip_prefix(['.', ')', ':', '、', '．']);
    // `2.5 hours` starts with a number that is not that of a step.
    after.filter(|after| !after.starts_with(|letter: char| letter.is_ascii_digit())).unwrap_or(line).trim()
}

/// Interleaves lists: the first of each, then the second of each, and so on, without duplicates.
pub(crate) fn round_robin(lists: &[Vec<usize>], limit: usize) -> Vec<usize> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut seen = HashSet::new();
    (0..longest)
        .flat_map(|position| lists.iter().filter_map(move |list| list.get(position).copied()))
        .filter(|tool| seen.insert(*tool))
        .take(limit)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_step_numbers_are_stripped() {
        let text = "1. Load the file \n2) read it\n\n 10.  List three\n2.5 hours later\n3 apples\n4、保存";
        assert_eq!(
            parse_steps(text),
            ["Load the file", "read it", "List three", "2.5 hours later", "3 apples", "保存"]
        );
        assert!(parse_steps(" \n1.\n").is_empty());
    }

    #[test]
    fn lists_are_interleaved() {
        assert_eq!(round_robin(&[vec![1, 2, 3], vec![2, 4], vec![]], 10), [1, 2, 4, 3]);
        assert_eq!(round_robin(&[vec![1, 2, 3], vec![5, 4]], 3), [1, 5, 2]);
        assert!(round_robin(&[], 10).is_empty());
    }
}
