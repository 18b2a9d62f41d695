//! Whether an address could have been made from a template of addresses (RFC 6570).

/// A longer template or address is not looked at.
const LONGEST: usize = 8 << 10;

/// A template taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    /// How many bytes stand for themselves: the more, the better the template knows what it is about.
    literal: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Stands for itself.
    Literal(String),
    /// One value without reserved characters, such as a slash; none where a slash is meant to be in it.
    Value { reserved: bool },
}

impl Pattern {
    /// Reads a template; none if it is not one.
    pub(super) fn read(template: &str) -> Option<Self> {
        if template.len() > LONGEST {
            return None;
        }
        let (mut parts, mut literal, mut rest) = (Vec::new(), 0, template);
        while let Some((before, after)) = rest.split_once('{') {
            let (expression, after) = after.split_once('}')?;
            if !before.is_empty() {
                literal += before.len();
                parts.push(Part::Literal(before.to_owned()));
            }
            // `{+path}` and all that bring separators of their own may hold any character.
            let reserved =
                expression.starts_with(['+', '#', '/', '.', ';', '?', '&']) || expression.ends_with('*');
            parts.push(Part::Value { reserved });
            rest = after;
        }
        if !rest.is_empty() {
            literal += rest.len();
            parts.push(Part::Literal(rest.to_owned()));
        }
        Some(Self { parts, literal })
    }

    /// How many of its bytes stand for themselves.
    pub(super) fn literal(&self) -> usize {
        self.literal
    }

    /// Whether an address could have been made from it. Takes time in proportion to the length of both, whatever they are.
    pub(super) fn fits(&self, address: &str) -> bool {
        let bytes = address.as_bytes();
        if bytes.len() > LONGEST {
            return false;
        }
        // The places in the address that can be reached with the parts so far.
        let mut reached = vec![false; bytes.len() + 1];
        reached.first_mut().into_iter().for_each(|start| *start = true);
        for part in &self.parts {
            reached = match part {
                Part::Literal(text) => after_literal(&reached, bytes, text.as_bytes()),
                Part::Value { reserved } => after_value(&reached, bytes, *reserved),
            };
        }
        reached.last() == Some(&true)
    }
}

fn after_literal(reached: &[bool], bytes: &[u8], text: &[u8]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    for (start, _) in reached.iter().enumerate().filter(|(_, reached)| **reached) {
        if bytes.get(start..).is_some_and(|rest| rest.starts_with(text))
            && let Some(place) = next.get_mut(start + text.len())
        {
            *place = true;
        }
    }
    next
}

fn after_value(reached: &[bool], bytes: &[u8], reserved: bool) -> Vec<bool> {
    let mut next = reached.to_vec();
    let mut inside = false;
    for (place, byte) in bytes.iter().enumerate() {
        inside |= reached.get(place) == Some(&true);
        inside &= reserved || !matches!(byte, b'/' | b'?' | b'#');
        if let Some(after) = next.get_mut(place + 1) {
            *after |= inside;
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fits(template: &str, address: &str) -> bool {
        Pattern::read(template).is_some_and(|pattern| pattern.fits(address))
    }

    #[test]
    fn addresses_made_from_a_template_fit_it() {
        assert!(fits("note://numbered/{number}", "note://numbered/7"));
        assert!(!fits("note://numbered/{number}", "note://numbered/7/8"));
        assert!(!fits("note://numbered/{number}", "note://other/7"));
        assert!(fits("file:///{+path}", "file:///a/b/c.txt"));
        assert!(fits("demo://{kind}/{id}.txt", "demo://text/1.txt"));
        assert!(!fits("demo://{kind}/{id}.txt", "demo://text/1.md"));
        assert!(fits("search://x{?q,page}", "search://x?q=1&page=2"));
        assert!(fits("search://x{?q}", "search://x"));
        assert!(fits("a{b}{c}a", "aaa"));
        assert!(fits("plain://address", "plain://address") && !fits("plain://address", "plain://addres"));
        assert_eq!(Pattern::read("broken://{x"), None);
    }

    #[test]
    fn a_hostile_template_does_not_take_for_ever() {
        let template = "{+a}x".repeat(1_500);
        assert!(!fits(&template, &"x".repeat(1_499)));
        assert!(fits(&template, &"x".repeat(1_500)));
    }

    proptest! {
        #[test]
        fn what_is_filled_in_fits(
            literals in prop::collection::vec("[a-z:/.]{0,6}", 1..5), values in prop::collection::vec("[a-z0-9é-]{1,6}", 5),
        ) {
            let (mut template, mut address) = (String::new(), String::new());
            for (place, literal) in literals.iter().enumerate() {
                template.push_str(literal);
                address.push_str(literal);
                template.push_str("{value}");
                address.push_str(&values[place]);
            }
            prop_assert!(fits(&template, &address));
        }
    }
}
