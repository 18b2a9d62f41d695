//! The kept end of stderr, from friendly and hostile servers.

use proptest::prelude::*;

use super::*;

fn tail_of(limit: usize, chunks: &[&str]) -> StderrTail {
    let tail = StderrTail::new(limit, vec!["zebra-42-crossing".to_owned(), "abc".to_owned()]);
    for chunk in chunks {
        tail.buffer.lock().push(chunk.as_bytes(), limit);
    }
    tail
}

#[test]
fn colours_titles_and_invisible_text_are_removed() {
    let tail =
        tail_of(1_000, &["\u{1b}[31;1merror\u{1b}[0m: \u{1b}]0;evil title\u{7}no\u{202e} file\r\n\u{0}done"]);
    assert_eq!(tail.text(), "error: no file\ndone");
}

#[test]
fn secrets_are_redacted() {
    let tail = tail_of(1_000, &["key is zebra-42-", "crossing, abc\npassword=hunter2\n"]);
    assert_eq!(tail.text(), "key is [redacted:environment], abc\npassword=[redacted:assignment]");
}

#[test]
fn a_partial_first_line_is_not_shown() {
    let tail = tail_of(12, &["password=hunter2\nnext\nlast"]);
    assert_eq!(tail.text(), "next\nlast");
    assert_eq!(tail_of(12, &["one endless line without an end"]).text(), "");
}

#[test]
fn lines_are_numbered() {
    let tail = tail_of(20, &["one\ntwo\nthr"]);
    assert_eq!(tail.lines_after(0), (2, vec!["one".to_owned(), "two".to_owned()]));
    assert_eq!(tail.lines_after(1), (2, vec!["two".to_owned()]));
    assert_eq!(tail.lines_after(2), (2, Vec::new()));
    tail.push_line("ee");
    tail.push_line("four and more");
    assert_eq!(tail.lines_after(2), (4, vec!["four and more".to_owned()]));
    assert_eq!(tail.lines_after(9), (4, Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn an_old_line_is_not_taken_for_a_new_one() {
    let tail = StderrTail::default();
    let age = Duration::from_secs(5);
    assert_eq!(tail.text_since(age), "");
    tail.push_line("Failed to request roots: error");
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(tail.text_since(age), "");
    tail.buffer.lock().push(b"panicked at", 1_000);
    tokio::time::advance(Duration::from_secs(4)).await;
    tail.buffer.lock().push(b" line 7\n", 1_000);
    assert_eq!(tail.text_since(age), "panicked at line 7");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(tail.text_since(age), "panicked at line 7", "the line began earlier");
}

#[tokio::test]
async fn a_flood_does_not_grow_the_buffer() {
    let tail = StderrTail::default();
    let flood = "a line of a flood\n".repeat(200_000);
    tail.read_from(flood.as_bytes()).await;
    assert!(
        tail.buffer.lock().bytes.capacity() <= 2 * DEFAULT_TAIL_BYTES,
        "{}",
        tail.buffer.lock().bytes.capacity()
    );
    assert_eq!(tail.lines_after(199_999), (200_000, vec!["a line of a flood".to_owned()]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// The tail is the end of all bytes, without anything that controls a terminal.
    #[test]
    fn the_tail_does_not_depend_on_chunk_boundaries(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        limit in 1_usize..200,
    ) {
        let (in_pieces, whole) = (StderrTail::new(limit, Vec::new()), StderrTail::new(limit, Vec::new()));
        for piece in &pieces {
            in_pieces.buffer.lock().push(piece, limit);
        }
        whole.buffer.lock().push(&pieces.concat(), limit);
        prop_assert!(in_pieces.buffer.lock().bytes.len() <= limit);
        prop_assert_eq!(in_pieces.text(), whole.text());
        prop_assert_eq!(in_pieces.lines_after(0), whole.lines_after(0));
        prop_assert!(!in_pieces.text().chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')));
    }
}
