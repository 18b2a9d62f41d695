//! A task searched step by step: its steps, and one list out of theirs.

use std::collections::HashSet;

/// The steps of a text, one a line, without their numbers.
pub fn steps_of(text: &str) -> Vec<String> {
    text.lines().map(unnumbered).filter(|step| !step.is_empty()).map(str::to_owned).collect()
}

/// A line without `1.`, `2)` or the like before it. A number that belongs to the sentence stays.
fn unnumbered(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    if rest.len() == line.len() {
        return line;
    }
    let after = rest.strip_prefix(['.', ')', ':', '、', '．']);
    // `2.5 hours` starts with a number, not with a step's.
    after.filter(|after| !after.starts_with(|letter: char| letter.is_ascii_digit())).unwrap_or(line).trim()
}

/// One list out of several: the first of each, then the second of each, and so on, each tool once.
pub fn round_robin(lists: &[Vec<usize>], limit: usize) -> Vec<usize> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let mut seen = HashSet::new();
    (0..longest)
        .flat_map(|place| lists.iter().filter_map(move |list| list.get(place).copied()))
        .filter(|tool| seen.insert(*tool))
        .take(limit)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lose_their_numbers_and_nothing_else() {
        let text = "1. Load the file \n2) read it\n\n 10.  List three\n2.5 hours later\n3 apples\n4、保存";
        assert_eq!(
            steps_of(text),
            ["Load the file", "read it", "List three", "2.5 hours later", "3 apples", "保存"]
        );
        assert!(steps_of(" \n1.\n").is_empty());
    }

    #[test]
    fn lists_take_turns() {
        assert_eq!(round_robin(&[vec![1, 2, 3], vec![2, 4], vec![]], 10), [1, 2, 4, 3]);
        assert_eq!(round_robin(&[vec![1, 2, 3], vec![5, 4]], 3), [1, 5, 2]);
        assert!(round_robin(&[], 10).is_empty());
    }
}
