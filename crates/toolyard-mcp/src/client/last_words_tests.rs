//! Last words of all kinds, friendly and hostile.

use proptest::prelude::*;

use super::*;

fn after(limit: usize, said: &[&str]) -> LastWords {
    let words = LastWords::new(limit, vec!["zebra-42-crossing".to_owned(), "abc".to_owned()]);
    for chunk in said {
        words.kept().push(chunk.as_bytes(), limit);
    }
    words
}

#[test]
fn colours_titles_and_hidden_text_go() {
    let words =
        after(1_000, &["\u{1b}[31;1merror\u{1b}[0m: \u{1b}]0;evil title\u{7}no\u{202e} file\r\n\u{0}done"]);
    assert_eq!(words.text(), "error: no file\ndone");
}

#[test]
fn secrets_go() {
    let words = after(1_000, &["key is zebra-42-", "crossing, abc\npassword=hunter2\n"]);
    assert_eq!(words.text(), "key is [redacted:environment], abc\npassword=[redacted:assignment]");
}

#[test]
fn half_a_line_is_not_shown() {
    let words = after(12, &["password=hunter2\nnext\nlast"]);
    assert_eq!(words.text(), "next\nlast");
    assert_eq!(after(12, &["one endless line without an end"]).text(), "");
}

#[test]
fn lines_are_numbered() {
    let words = after(20, &["one\ntwo\nthr"]);
    assert_eq!(words.lines_after(0), (2, vec!["one".to_owned(), "two".to_owned()]));
    assert_eq!(words.lines_after(1), (2, vec!["two".to_owned()]));
    assert_eq!(words.lines_after(2), (2, Vec::new()));
    words.note("ee");
    words.note("four and more");
    assert_eq!(words.lines_after(2), (4, vec!["four and more".to_owned()]));
    assert_eq!(words.lines_after(9), (4, Vec::new()));
}

#[tokio::test]
async fn a_flood_costs_no_memory() {
    let words = LastWords::default();
    let flood = "a line of a flood\n".repeat(200_000);
    words.fill(flood.as_bytes()).await;
    assert!(words.kept().bytes.capacity() <= 2 * BYTES, "{}", words.kept().bytes.capacity());
    assert_eq!(words.lines_after(199_999), (200_000, vec!["a line of a flood".to_owned()]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// However the bytes come in pieces, what is kept is their end, and nothing that steers a terminal.
    #[test]
    fn pieces_make_no_difference(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        limit in 1_usize..200,
    ) {
        let (pieced, whole) = (LastWords::new(limit, Vec::new()), LastWords::new(limit, Vec::new()));
        for piece in &pieces {
            pieced.kept().push(piece, limit);
        }
        whole.kept().push(&pieces.concat(), limit);
        prop_assert!(pieced.kept().bytes.len() <= limit);
        prop_assert_eq!(pieced.text(), whole.text());
        prop_assert_eq!(pieced.lines_after(0), whole.lines_after(0));
        prop_assert!(!pieced.text().chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')));
    }
}
