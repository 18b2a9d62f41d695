//! Counts the tokens of tool definitions.

use serde_json::json;

use crate::dataset::records::ToolRecord;

/// A method of counting tokens.
#[derive(Debug, Clone, Copy)]
pub struct TokenCounter {
    /// Counts the tokens of a text.
    pub count: fn(&str) -> usize,
    /// Name of the method.
    pub method: &'static str,
}

impl TokenCounter {
    /// An estimate without a vocabulary: 4 characters per token, or 1 of Chinese, Japanese or Korean.
    pub const ESTIMATE: Self = Self {
        count: estimate,
        method: "estimated (4 characters each, or 1 of Chinese, Japanese or Korean)",
    };

    /// Tokens of each definition.
    pub fn of_tools(&self, tools: &[ToolRecord]) -> Vec<usize> {
        tools.iter().map(|tool| (self.count)(&definition(tool))).collect()
    }
}

/// The definition of a tool as compact JSON.
fn definition(tool: &ToolRecord) -> String {
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

/// Whether a character takes about one token.
fn is_dense(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_letters_or_one_cjk_character_are_a_token() {
        assert_eq!([estimate(""), estimate("abcd"), estimate("abcde"), estimate("天气 ab")], [0, 1, 2, 3]);
    }
}
