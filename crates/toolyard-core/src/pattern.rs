//! Which tools somebody means: by name, by a pattern, or either with the source they come from.

/// A name, a pattern with `*`, or either with `@SOURCE` behind it: `read_*`, `get_time`, `*@excel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolPattern<'a> {
    /// The name or pattern of the tool.
    pub name: &'a str,
    /// The name or pattern of its source.
    pub source: Option<&'a str>,
}

impl<'a> ToolPattern<'a> {
    /// Reads a pattern; any text is one.
    pub fn read(text: &'a str) -> Self {
        match text.rsplit_once('@') {
            Some((name, source)) if !name.is_empty() && !source.is_empty() => {
                Self { name, source: Some(source) }
            }
            _ => Self { name: text, source: None },
        }
    }

    /// Whether a tool of this source is meant.
    pub fn fits(self, tool: &str, source: &str) -> bool {
        // The name of a tool may have an `@` in it.
        let whole =
            || self.source.is_some_and(|end| matches_wildcards(&format!("{}@{end}", self.name), tool));
        (matches_wildcards(self.name, tool)
            && self.source.is_none_or(|wanted| matches_wildcards(wanted, source)))
            || whole()
    }

    /// Whether it names one tool.
    pub fn names_one(self) -> bool {
        !self.name.contains('*')
    }
}

/// Whether a text fits a pattern in which `*` stands for anything; in time of their product at worst.
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
    fn stars_stand_for_anything() {
        let fits = matches_wildcards;
        assert!(fits("*", "") && fits("*", "x") && fits("a*c", "abc") && fits("a*b*c", "a-b-b-c"));
        assert!(fits("**", "x") && fits("abc", "abc"));
        assert!(!fits("a*c", "ab") && !fits("", "x") && !fits("ab*ba", "aba") && !fits("a*b*b", "ab"));
    }

    #[test]
    fn a_source_may_be_meant_too() {
        let fits = |pattern, tool, source| ToolPattern::read(pattern).fits(tool, source);
        assert!(fits("*@excel", "apply_formula", "excel") && !fits("*@excel", "apply_formula", "other"));
        assert!(fits("mail@home", "mail@home", "post"), "a name may have an at sign");
    }

    proptest! {
        #[test]
        fn a_pattern_made_from_a_text_fits_it(parts in prop::collection::vec("[ab]{0,3}", 1..5)) {
            prop_assert!(matches_wildcards(&parts.join("*"), &parts.concat()));
        }
    }
}
