//! Patterns that select tools by name and source.

/// A tool name that may contain `*`, optionally followed by `@SOURCE`: `read_*`, `get_time`, `*@excel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolPattern<'a> {
    /// The name or pattern of the tool.
    pub name: &'a str,
    /// The name or pattern of its source.
    pub source: Option<&'a str>,
}

impl<'a> ToolPattern<'a> {
    /// Parses a pattern; every text is one.
    pub fn parse(text: &'a str) -> Self {
        match text.rsplit_once('@') {
            Some((name, source)) if !name.is_empty() && !source.is_empty() => {
                Self { name, source: Some(source) }
            }
            _ => Self { name: text, source: None },
        }
    }

    /// Whether the pattern selects this tool of this source.
    pub fn matches(self, tool: &str, source: &str) -> bool {
        // The name of a tool may contain `@`.
        let matches_whole_text =
            || self.source.is_some_and(|end| matches_wildcards(&format!("{}@{end}", self.name), tool));
        (matches_wildcards(self.name, tool)
            && self.source.is_none_or(|pattern| matches_wildcards(pattern, source)))
            || matches_whole_text()
    }

    /// Whether the pattern names exactly one tool.
    pub fn is_exact(self) -> bool {
        !self.name.contains('*')
    }
}

/// Whether a text matches a pattern in which `*` stands for any characters. Takes at most the product of both lengths.
pub fn matches_wildcards(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(mut part) = parts.next() else { return rest.is_empty() };
    for next in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        (rest, part) = (after, next);
    }
    rest.ends_with(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_matches_anything() {
        let matches = matches_wildcards;
        assert!(
            matches("*", "") && matches("*", "x") && matches("a*c", "abc") && matches("a*b*c", "a-b-b-c")
        );
        assert!(matches("**", "x") && matches("abc", "abc"));
        assert!(
            !matches("a*c", "ab") && !matches("", "x") && !matches("ab*ba", "aba") && !matches("a*b*b", "ab")
        );
    }

    #[test]
    fn a_pattern_may_name_a_source() {
        let matches = |pattern, tool, source| ToolPattern::parse(pattern).matches(tool, source);
        assert!(
            matches("*@excel", "apply_formula", "excel") && !matches("*@excel", "apply_formula", "other")
        );
        assert!(matches("mail@home", "mail@home", "post"), "a name may have an at sign");
    }

    proptest! {
        #[test]
        fn a_pattern_made_from_a_text_matches_it(parts in prop::collection::vec("[ab]{0,3}", 1..5)) {
            prop_assert!(matches_wildcards(&parts.join("*"), &parts.concat()));
        }
    }
}
