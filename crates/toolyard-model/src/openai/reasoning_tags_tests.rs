//! Splits of text into reasoning and text.

use proptest::prelude::*;

use super::*;

fn split(pieces: &[&str]) -> (String, String) {
    let (mut filter, mut events) = (ReasoningTagFilter::default(), Vec::new());
    for piece in pieces {
        filter.push(piece, &mut events);
    }
    filter.finish(&mut events);
    let (mut reasoning, mut answer) = (String::new(), String::new());
    for event in events {
        match event {
            ModelEvent::Reasoning(text) => reasoning.push_str(&text),
            ModelEvent::Text(text) => answer.push_str(&text),
            other => panic!("{other:?}"),
        }
    }
    (reasoning, answer)
}

#[test]
fn reasoning_is_separated_from_the_text() {
    let both = |reasoning: &str, text: &str| (reasoning.to_owned(), text.to_owned());
    assert_eq!(split(&["<think>\nhm\n</think>\n\nSeven."]), both("\nhm\n", "Seven."));
    assert_eq!(split(&["\n<thi", "nk>a<b</thi", "nk>c"]), both("a<b", "c"));
    assert_eq!(split(&["<thinking>a</thinking>b\n<think>c</think>d"]), both("ac", "b\nd"));
    // Truncated reasoning is not text.
    assert_eq!(split(&["<think>never ends"]), both("never ends", ""));
}

#[test]
fn a_tag_within_a_sentence_is_text() {
    let (reasoning, text) = split(&["The tag <think> begins a thought.</think>"]);
    assert_eq!((reasoning.as_str(), text.as_str()), ("", "The tag <think> begins a thought.</think>"));
    assert_eq!(split(&["<thin"]), (String::new(), "<thin".to_owned()));
}

proptest! {
    #[test]
    fn chunk_boundaries_do_not_matter(parts in prop::collection::vec(
        prop::sample::select(vec!["<think>", "</think>", "<thinking>", "<thi", "a", "\n", " ", "<", "é", "</"]), 0..24,
    )) {
        let whole: String = parts.concat();
        let letters: Vec<String> = whole.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        prop_assert_eq!(split(&[&whole]), split(&letters));
        prop_assert_eq!(split(&parts), split(&letters));
    }
}
