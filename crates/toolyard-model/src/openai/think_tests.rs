//! What counts as a thought, however the text is cut into pieces.

use proptest::prelude::*;

use super::*;

fn split(pieces: &[&str]) -> (String, String) {
    let (mut splitter, mut events) = (ThinkSplitter::default(), Vec::new());
    for piece in pieces {
        splitter.push(piece, &mut events);
    }
    splitter.finish(&mut events);
    let (mut thought, mut said) = (String::new(), String::new());
    for event in events {
        match event {
            ModelEvent::Reasoning(text) => thought.push_str(&text),
            ModelEvent::Text(text) => said.push_str(&text),
            other => panic!("{other:?}"),
        }
    }
    (thought, said)
}

#[test]
fn thoughts_are_taken_out_of_the_answer() {
    let both = |thought: &str, said: &str| (thought.to_owned(), said.to_owned());
    assert_eq!(split(&["<think>\nhm\n</think>\n\nSeven."]), both("\nhm\n", "Seven."));
    assert_eq!(split(&["\n<thi", "nk>a<b</thi", "nk>c"]), both("a<b", "c"));
    assert_eq!(split(&["<thinking>a</thinking>b\n<think>c</think>d"]), both("ac", "b\nd"));
    // Cut off within a thought: nothing of it is an answer.
    assert_eq!(split(&["<think>never ends"]), both("never ends", ""));
}

#[test]
fn a_tag_within_a_sentence_is_no_thought() {
    let (thought, said) = split(&["The tag <think> begins a thought.</think>"]);
    assert_eq!((thought.as_str(), said.as_str()), ("", "The tag <think> begins a thought.</think>"));
    assert_eq!(split(&["<thin"]), (String::new(), "<thin".to_owned()));
}

proptest! {
    #[test]
    fn pieces_do_not_matter(parts in prop::collection::vec(
        prop::sample::select(vec!["<think>", "</think>", "<thinking>", "<thi", "a", "\n", " ", "<", "é", "</"]), 0..24,
    )) {
        let whole: String = parts.concat();
        let letters: Vec<String> = whole.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        prop_assert_eq!(split(&[&whole]), split(&letters));
        prop_assert_eq!(split(&parts), split(&letters));
    }
}
