//! Unsafe characters are found, and ordinary writing is left alone.

use proptest::prelude::*;

use super::*;

fn kinds(text: &str) -> Vec<UnsafeKind> {
    find_unsafe(text).into_iter().map(|span| span.kind).collect()
}

#[test]
fn every_kind_is_found_and_removed() {
    for (text, kind, clean) in [
        ("a\u{e0041}b", UnsafeKind::Tag, "ab"),
        ("a\u{e0001}b", UnsafeKind::Tag, "ab"),
        ("a\u{202e}b", UnsafeKind::Override, "ab"),
        ("a\u{2066}b", UnsafeKind::Direction, "ab"),
        ("a\u{200e}b", UnsafeKind::Direction, "ab"),
        ("a\u{200b}b", UnsafeKind::ZeroWidth, "ab"),
        ("a\u{200d}b", UnsafeKind::ZeroWidth, "ab"),
        ("a\u{200c}b", UnsafeKind::ZeroWidth, "ab"),
        ("pass\u{ad}word", UnsafeKind::ZeroWidth, "password"),
        ("\u{feff}a", UnsafeKind::ZeroWidth, "a"),
        ("a\u{2062}b", UnsafeKind::ZeroWidth, "ab"),
        ("a\u{fe0f}b", UnsafeKind::Selector, "ab"),
        ("a\u{e0101}b", UnsafeKind::Selector, "ab"),
        ("葛\u{e0100}城", UnsafeKind::Selector, "葛城"),
        ("中\u{fe00}文", UnsafeKind::Selector, "中文"),
        ("1\u{fe03}2", UnsafeKind::Selector, "12"),
        ("ab\u{61c}c", UnsafeKind::Direction, "abc"),
        ("a\u{3164}b", UnsafeKind::Blank, "ab"),
        ("a\u{1b}[31;1mb", UnsafeKind::Escape, "ab"),
        ("a\u{9b}2Jb", UnsafeKind::Escape, "ab"),
        ("a\u{1b}]0;title", UnsafeKind::Escape, "a0;title"),
        ("a\u{0}b", UnsafeKind::Control, "ab"),
        ("a\rb", UnsafeKind::Control, "ab"),
        ("a\u{85}b", UnsafeKind::Control, "ab"),
        ("a\u{ffff}b", UnsafeKind::Control, "ab"),
    ] {
        assert_eq!(kinds(text), [kind], "{}", text.escape_unicode());
        assert_eq!(sanitize(text).0, clean);
        assert!(find_unsafe(&escape_unsafe(text)).is_empty());
    }
}

#[test]
fn ordinary_writing_is_safe() {
    for text in [
        "two\nlines\tand a tab\r\nand a Windows line",
        "👩‍💻 👨‍👩‍👧 🏳️‍🌈 ❤️ 1️⃣ 👍🏽 ☎︎ 🧑🏽‍🚒",
        "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} Scotland",
        "می‌خواهم بروم",
        "क्‍ष और क्‌ष",
        "ශ්‍රී ලංකා",
        "עברית\u{200f} (English)\u{200e}",
        "ภาษา\u{200b}ไทย",
        "葛城市 東京",
        "\u{2269}\u{fe00} 、\u{fe01}",
        "搜索网页并返回结果 — „Gänsefüßchen“ … ½ ™ naïve",
        "Zażółć gęślą jaźń; Ελληνικά; Русский; 한국어; 日本語",
    ] {
        assert_eq!(kinds(text), [], "{}", text.escape_unicode());
        assert!(matches!(sanitize(text).0, Cow::Borrowed(_)));
    }
}

#[test]
fn selectors_and_joiners_cannot_encode_a_message() {
    let smuggled = format!("😀{}", "\u{e0148}\u{e0155}".repeat(4));
    assert_eq!(kinds(&smuggled).len(), 8);
    assert!(is_attack(&find_unsafe(&smuggled)));
    assert_eq!(kinds("❤\u{fe0f}\u{fe0f}"), [UnsafeKind::Selector]);
    assert_eq!(kinds("م\u{200c}\u{200c}"), [UnsafeKind::ZeroWidth]);
    assert_eq!(kinds("🏴\u{e0068}\u{e0069}\u{e007f}").len(), 3);
}

#[test]
fn only_characters_without_another_use_are_an_attack() {
    let attack = |text: &str| is_attack(&find_unsafe(text));
    assert!(attack("\u{e0041}"));
    assert!(attack("\u{202e}txt.exe"));
    assert!(attack(&"\u{200b}".repeat(8)));
    assert!(!attack(&"\u{200b}".repeat(7)));
    assert!(!attack(&"word\u{200b}".repeat(50)));
    assert!(!attack("\u{1b}[31mred\u{1b}[0m\u{ad}\u{feff}"));
}

#[test]
fn escaping_makes_unsafe_characters_visible() {
    assert_eq!(escape_unsafe("a\u{1b}[31mred\u{202e}x\n"), "a\\u{1b}[31mred\\u{202e}x\n");
    assert_eq!(escape_unsafe("中文 👨‍👩‍👧"), "中文 👨‍👩‍👧");
}

#[test]
fn direction_marks_cannot_encode_a_message() {
    let marks = "ע\u{200e}\u{200f}\u{200f}\u{200e}\u{61c}";
    assert_eq!(kinds(marks), [UnsafeKind::Direction; 4]);
    assert_eq!(sanitize(marks).0, "ע\u{200e}");
}

fn escape_chunks(chunks: &[&str]) -> String {
    let mut escaper = ChunkEscaper::default();
    chunks.iter().map(|chunk| escaper.escape(chunk)).collect()
}

#[test]
fn an_emoji_in_two_chunks_stays_whole() {
    assert_eq!(escape_chunks(&["👩", "\u{200d}", "💻 ❤", "\u{fe0f}\n"]), "👩\u{200d}💻 ❤\u{fe0f}\n");
    assert_eq!(escape_chunks(&["می", "\u{200c}", "خواهم", "\n"]), "می\u{200c}خواهم\n");
}

#[test]
fn unsafe_characters_in_chunks_are_escaped() {
    assert_eq!(
        escape_chunks(&["a\u{1b}[31m\u{200b}\u{202e}\u{e0041}"]),
        "a\\u{1b}[31m\\u{200b}\\u{202e}\\u{e0041}"
    );
    assert_eq!(escape_chunks(&["a", "\u{200d}", "\u{200c}", "b"]), "a\\u{200d}\\u{200c}b");
    assert_eq!(escape_chunks(&["中", "\u{e0100}", "\u{fe0f}"]), "中\\u{e0100}\\u{fe0f}");
}

#[test]
fn unsafe_characters_in_chunks_are_removed() {
    let mut sanitizer = ChunkSanitizer::default();
    let chunks = ["👩", "\u{200d}", "💻 a\u{1b}", "[31m\u{202e}", "\u{e0041}b中", "\u{e0100}\u{200d}", "."];
    let sanitized: String = chunks.iter().map(|chunk| sanitizer.sanitize(chunk)).collect();
    assert_eq!(sanitized, "👩\u{200d}💻 a[31mb中.");
}

#[test]
fn a_carriage_return_in_a_chunk_cannot_overwrite_its_line() {
    assert_eq!(escape_chunks(&["real\rfake\r\nnext"]), "real\\u{d}fake\r\nnext");
    assert_eq!(escape_chunks(&["real\r", "fake\r", "\nnext"]), "real\\u{d}fake\r\nnext");
}

#[test]
fn only_visible_characters_and_spaces_are_visible() {
    assert!("aé中 👩".chars().all(is_visible));
    assert!(!"\n\t\u{0}\u{ad}\u{200d}\u{fe0f}\u{2028}\u{202e}\u{e0041}\u{3164}".chars().any(is_visible));
}

fn any_text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        any::<char>(),
        proptest::sample::select(vec![
            '\u{1b}',
            '[',
            ']',
            'm',
            '\u{9b}',
            '\u{200d}',
            '\u{200c}',
            '\u{fe0f}',
            '❤',
            'م',
            'a',
            '\r',
            '\n',
            '\u{e0100}',
            '葛',
            '\u{1f3f4}',
            '\u{e0067}',
            '\u{e007f}',
            '\u{202e}',
            '\u{200f}',
        ]),
    ];
    proptest::collection::vec(letter, 0..40).prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn spans_are_ordered_and_on_character_boundaries(text in any_text()) {
        let mut end = 0;
        for span in find_unsafe(&text) {
            prop_assert!(end <= span.start && span.start < span.end);
            prop_assert!(text.get(span.start..span.end).is_some());
            end = span.end;
        }
    }

    #[test]
    fn no_control_or_direction_character_survives(text in any_text()) {
        let (clean, _) = sanitize(&text);
        let is_unsafe = |letter: char| (letter.is_control() && !matches!(letter, '\n' | '\t' | '\r'))
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        prop_assert!(!clean.chars().any(is_unsafe));
        prop_assert_eq!(find_unsafe(&clean), []);
        prop_assert!(!escape_unsafe(&text).chars().any(is_unsafe));
        let mut escaper = ChunkEscaper::default();
        let mut streamed: String =
            text.chars().map(|letter| escaper.escape(letter.encode_utf8(&mut [0; 4]))).collect();
        streamed.push_str(&escaper.escape("\n"));
        prop_assert_eq!(find_unsafe(&streamed), []);
        let mut sanitizer = ChunkSanitizer::default();
        let mut streamed: String =
            text.chars().map(|letter| sanitizer.sanitize(letter.encode_utf8(&mut [0; 4]))).collect();
        streamed.push_str(&sanitizer.sanitize("\n"));
        prop_assert!(!streamed.chars().any(is_unsafe));
        prop_assert_eq!(find_unsafe(&streamed), []);
        prop_assert_eq!(find_unsafe(&escape_unsafe(&text)), []);
    }
}
