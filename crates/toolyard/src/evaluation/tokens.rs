//! What the definitions of tools cost a model that reads them.

use serde_json::json;

use super::data::ToolText;

/// How tokens are counted.
#[derive(Debug, Clone, Copy)]
pub struct TokenCounter {
    /// How many tokens a text has.
    pub count: fn(&str) -> usize,
    /// How it counts, in a few words.
    pub method: &'static str,
}

impl TokenCounter {
    /// A guess that needs no vocabulary: four letters are a token, and so is one Chinese, Japanese or Korean character.
    pub const ESTIMATE: Self = Self {
        count: estimate,
        method: "estimated (4 characters each, or 1 of Chinese, Japanese or Korean)",
    };

    /// What each of these tools costs.
    pub fn of_tools(&self, tools: &[ToolText]) -> Vec<usize> {
        tools.iter().map(|tool| (self.count)(&definition(tool))).collect()
    }
}

/// A tool as a model reads it: name, description and parameters as compact JSON.
pub fn definition(tool: &ToolText) -> String {
    let params: Vec<_> = tool
        .params
        .iter()
        .map(|param| json!({"name": param.name, "description": param.description}))
        .collect();
    json!({"name": tool.name, "description": tool.description, "params": params}).to_string()
}

fn estimate(text: &str) -> usize {
    let dense = text.chars().filter(|letter| is_dense(*letter)).count();
    dense + (text.chars().count() - dense).div_ceil(4)
}

/// Whether a character is a word of its own, more or less.
fn is_dense(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_quarters_and_characters_are_wholes() {
        assert_eq!([estimate(""), estimate("abcd"), estimate("abcde"), estimate("天气 ab")], [0, 1, 2, 3]);
    }
}
