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
    /// Parses a pattern; every text is one. Neither names of tools nor ids of sources contain `@`.
    pub fn parse(text: &'a str) -> Self {
        match text.rsplit_once('@') {
            Some((name, source)) if !name.is_empty() && !source.is_empty() => {
                Self { name, source: Some(source) }
            }
            _ => Self { name: text, source: None },
        }
    }

    /// Whether the pattern selects this tool of this source. Both are compared on their own: a name that contains the text
    /// of a whole pattern selects nothing of another source.
    pub fn matches(self, tool: &str, source: &str) -> bool {
        matches_wildcards(self.name, tool)
            && self.source.is_none_or(|pattern| matches_wildcards(pattern, source))
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
        assert!(!matches("mail@home", "mail@home", "post"), "the name of a tool is no source");
    }

    proptest! {
        #[test]
        fn a_pattern_made_from_a_text_matches_it(parts in prop::collection::vec("[ab]{0,3}", 1..5)) {
            prop_assert!(matches_wildcards(&parts.join("*"), &parts.concat()));
        }

        /// The names include those that end in the source of the pattern.
        #[test]
        fn no_name_makes_a_tool_fit_a_pattern_of_another_source(
            name in prop_oneof![Just("*".to_owned()), "[ab*@]{1,4}"],
            source in "[a-c]{1,3}",
            tool in prop_oneof!["[ab@]{0,6}", ".{0,12}", "[ab@]{0,3}@[a-c]{1,3}"],
            other in "[a-c:]{1,4}",
        ) {
            prop_assume!(other != source);
            let text = format!("{name}@{source}");
            for tool in [tool.clone(), text.clone(), format!("{tool}@{source}")] {
                prop_assert!(!ToolPattern::parse(&text).matches(&tool, &other), "{text} selects {tool} of {other}");
            }
        }
    }
}
