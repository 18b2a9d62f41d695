//! Matches URIs against URI templates (RFC 6570).

use super::MAX_URI_BYTES;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UriTemplate {
    segments: Vec<Segment>,
    /// Total length of the literals.
    literal_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    /// Any text; without `/`, `?` and `#` unless `allow_reserved`, as RFC 6570 calls these characters.
    Expression {
        allow_reserved: bool,
    },
}

impl UriTemplate {
    /// Parses a template; `None` if it is malformed or too long.
    pub(super) fn parse(template: &str) -> Option<Self> {
        if template.len() > MAX_URI_BYTES {
            return None;
        }
        let (mut segments, mut literal_bytes, mut rest) = (Vec::new(), 0, template);
        while let Some((before, after)) = rest.split_once('{') {
            let (expression, after) = after.split_once('}')?;
            if !before.is_empty() {
                literal_bytes += before.len();
                segments.push(Segment::Literal(before.to_owned()));
            }
            // `{+path}` and the operators that insert separators expand to reserved characters.
            let allow_reserved =
                expression.starts_with(['+', '#', '/', '.', ';', '?', '&']) || expression.ends_with('*');
            segments.push(Segment::Expression { allow_reserved });
            rest = after;
        }
        if !rest.is_empty() {
            literal_bytes += rest.len();
            segments.push(Segment::Literal(rest.to_owned()));
        }
        Some(Self { segments, literal_bytes })
    }

    /// How specific the template is.
    pub(super) fn literal_bytes(&self) -> usize {
        self.literal_bytes
    }

    /// Whether the template can expand to this URI. The time is bounded by the product of both lengths.
    pub(super) fn matches(&self, uri: &str) -> bool {
        let bytes = uri.as_bytes();
        if bytes.len() > MAX_URI_BYTES {
            return false;
        }
        // Positions in the URI that the segments so far can end at.
        let mut reached = vec![false; bytes.len() + 1];
        reached.first_mut().into_iter().for_each(|start| *start = true);
        for segment in &self.segments {
            reached = match segment {
                Segment::Literal(text) => after_literal(&reached, bytes, text.as_bytes()),
                Segment::Expression { allow_reserved } => after_expression(&reached, bytes, *allow_reserved),
            };
        }
        reached.last() == Some(&true)
    }
}

fn after_literal(reached: &[bool], bytes: &[u8], text: &[u8]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    for (start, _) in reached.iter().enumerate().filter(|(_, reached)| **reached) {
        if bytes.get(start..).is_some_and(|rest| rest.starts_with(text))
            && let Some(end) = next.get_mut(start + text.len())
        {
            *end = true;
        }
    }
    next
}

fn after_expression(reached: &[bool], bytes: &[u8], allow_reserved: bool) -> Vec<bool> {
    let mut next = reached.to_vec();
    let mut is_inside = false;
    for (position, byte) in bytes.iter().enumerate() {
        is_inside |= reached.get(position) == Some(&true);
        is_inside &= allow_reserved || !matches!(byte, b'/' | b'?' | b'#');
        if let Some(end) = next.get_mut(position + 1) {
            *end |= is_inside;
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(template: &str, uri: &str) -> bool {
        UriTemplate::parse(template).is_some_and(|template| template.matches(uri))
    }

    #[test]
    fn a_template_matches_its_expansions() {
        assert!(matches("note://numbered/{number}", "note://numbered/7"));
        assert!(!matches("note://numbered/{number}", "note://numbered/7/8"));
        assert!(!matches("note://numbered/{number}", "note://other/7"));
        assert!(matches("file:///{+path}", "file:///a/b/c.txt"));
        assert!(matches("demo://{kind}/{id}.txt", "demo://text/1.txt"));
        assert!(!matches("demo://{kind}/{id}.txt", "demo://text/1.md"));
        assert!(matches("search://x{?q,page}", "search://x?q=1&page=2"));
        assert!(matches("search://x{?q}", "search://x"));
        assert!(matches("a{b}{c}a", "aaa"));
        assert!(
            matches("plain://address", "plain://address") && !matches("plain://address", "plain://addres")
        );
        assert_eq!(UriTemplate::parse("broken://{x"), None);
    }

    #[test]
    fn a_malicious_template_is_matched_in_bounded_time() {
        let template = "{+a}x".repeat(1_500);
        assert!(!matches(&template, &"x".repeat(1_499)));
        assert!(matches(&template, &"x".repeat(1_500)));
    }

    proptest! {
        #[test]
        fn an_expansion_matches(
            literals in prop::collection::vec("[a-z:/.]{0,6}", 1..5), values in prop::collection::vec("[a-z0-9é-]{1,6}", 5),
        ) {
            let (mut template, mut uri) = (String::new(), String::new());
            for (position, literal) in literals.iter().enumerate() {
                template.push_str(literal);
                uri.push_str(literal);
                template.push_str("{value}");
                uri.push_str(&values[position]);
            }
            prop_assert!(matches(&template, &uri));
        }
    }
}
