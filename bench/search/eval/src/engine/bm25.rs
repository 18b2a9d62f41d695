//! Plain BM25 as in popular libraries: the baseline.
//!
//! Words are runs of at least two of `a`–`z` and `0`–`9` in the lower-cased name, description, parameter names and
//! parameter descriptions, all counting the same. A word that a query repeats counts again.

use std::collections::HashMap;

use super::Retriever;
use crate::dataset::records::ToolRecord;

/// `k1` of BM25.
const SATURATION: f64 = 1.5;
/// `b` of BM25.
const LENGTH_WEIGHT: f64 = 0.75;

/// A BM25 index.
#[derive(Debug, Default)]
pub struct Bm25 {
    tools: usize,
    /// Postings of each word: tools and term weights.
    words: HashMap<String, Vec<(usize, f64)>>,
}

impl Bm25 {
    /// Indexes tools.
    pub fn new(tools: &[ToolRecord]) -> Self {
        let texts: Vec<Vec<String>> = tools.iter().map(|tool| words(&text_of(tool))).collect();
        let total: usize = texts.iter().map(Vec::len).sum();
        let mean_length = (total as f64 / texts.len().max(1) as f64).max(1.0);
        let mut index: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        for (tool, text) in texts.into_iter().enumerate() {
            let damping =
                SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * text.len() as f64 / mean_length);
            let mut counts: HashMap<String, f64> = HashMap::new();
            text.into_iter().for_each(|word| *counts.entry(word).or_default() += 1.0);
            for (word, count) in counts {
                index.entry(word).or_default().push((tool, count * (SATURATION + 1.0) / (count + damping)));
            }
        }
        Self { tools: tools.len(), words: index }
    }
}

impl Retriever for Bm25 {
    fn search(&self, text: &str, limit: usize) -> Vec<usize> {
        let mut scores = vec![0.0; self.tools];
        for found in words(text).iter().filter_map(|word| self.words.get(word)) {
            let (tools, matching) = (self.tools as f64, found.len() as f64);
            let rarity = ((tools - matching + 0.5) / (matching + 0.5) + 1.0).ln();
            for (tool, weight) in found {
                if let Some(score) = scores.get_mut(*tool) {
                    *score += rarity * weight;
                }
            }
        }
        best(scores, limit)
    }
}

/// The tools with the highest positive scores; ties keep their order.
fn best(scores: Vec<f64>, limit: usize) -> Vec<usize> {
    let better =
        |one: &(usize, f64), other: &(usize, f64)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
    let mut found: Vec<(usize, f64)> =
        scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
    if limit < found.len() {
        found.select_nth_unstable_by(limit, better);
        found.truncate(limit);
    }
    found.sort_unstable_by(better);
    found.into_iter().map(|(tool, _)| tool).collect()
}

fn text_of(tool: &ToolRecord) -> String {
    let params = tool.params.iter().flat_map(|param| [param.name.as_str(), param.description.as_str()]);
    [tool.name.as_str(), tool.description.as_str()].into_iter().chain(params).collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let runs = lower.split(|letter: char| !letter.is_ascii_lowercase() && !letter.is_ascii_digit());
    runs.filter(|word| word.len() > 1).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> ToolRecord {
        let (name, description) = (name.to_owned(), description.to_owned());
        ToolRecord { id: name.clone(), name, description, ..ToolRecord::default() }
    }

    #[test]
    fn words_are_runs_of_two_or_more() {
        assert_eq!(words("Read_File v2, a 中文 GitHub"), ["read", "file", "v2", "github"]);
    }

    #[test]
    fn rare_words_and_short_texts_rank_first() {
        let index = Bm25::new(&[
            tool("list_files", "lists the files of a folder"),
            tool("read_file", "reads a file"),
            tool("read_mail", "reads the latest mail of the mailbox and marks the mail"),
        ]);
        assert_eq!(index.search("mail", 10), [2]);
        assert_eq!(index.search("read file", 10), [1, 2]);
        assert_eq!(index.search("read file", 1), [1]);
        assert!(index.search("天气", 10).is_empty());
        assert!(index.search("read", 0).is_empty());
        assert!(Bm25::new(&[]).search("read", 10).is_empty());
    }

    #[test]
    fn scores_agree_with_a_manual_calculation() {
        // Two tools of two words each; "mail" is in one: idf = ln(1.5/1.5 + 1), weight = 2.5/2.5.
        let index = Bm25::new(&[tool("send", "mail"), tool("send", "post")]);
        let weight = index.words.get("mail").and_then(|found| found.first()).copied();
        assert_eq!(weight, Some((0, 1.0)));
        // Both have "send": equal scores, in their own order.
        assert_eq!(index.search("send", 10), [0, 1]);
    }
}
