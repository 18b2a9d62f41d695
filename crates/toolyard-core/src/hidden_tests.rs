//! What hides is found, and ordinary writing is left alone.

use proptest::prelude::*;

use super::*;

fn kinds(text: &str) -> Vec<Hidden> {
    hidden_places(text).into_iter().map(|place| place.kind).collect()
}

#[test]
fn every_way_of_hiding_is_found_and_taken_out() {
    for (text, kind, clean) in [
        ("a\u{e0041}b", Hidden::Tag, "ab"),
        ("a\u{e0001}b", Hidden::Tag, "ab"),
        ("a\u{202e}b", Hidden::Override, "ab"),
        ("a\u{2066}b", Hidden::Direction, "ab"),
        ("a\u{200e}b", Hidden::Direction, "ab"),
        ("a\u{200b}b", Hidden::ZeroWidth, "ab"),
        ("a\u{200d}b", Hidden::ZeroWidth, "ab"),
        ("a\u{200c}b", Hidden::ZeroWidth, "ab"),
        ("pass\u{ad}word", Hidden::ZeroWidth, "password"),
        ("\u{feff}a", Hidden::ZeroWidth, "a"),
        ("a\u{2062}b", Hidden::ZeroWidth, "ab"),
        ("a\u{fe0f}b", Hidden::Selector, "ab"),
        ("a\u{e0101}b", Hidden::Selector, "ab"),
        ("a\u{3164}b", Hidden::Blank, "ab"),
        ("a\u{1b}[31;1mb", Hidden::Escape, "ab"),
        ("a\u{9b}2Jb", Hidden::Escape, "ab"),
        ("a\u{1b}]0;title", Hidden::Escape, "a0;title"),
        ("a\u{0}b", Hidden::Control, "ab"),
        ("a\rb", Hidden::Control, "ab"),
        ("a\u{85}b", Hidden::Control, "ab"),
        ("a\u{ffff}b", Hidden::Control, "ab"),
    ] {
        assert_eq!(kinds(text), [kind], "{}", text.escape_unicode());
        assert_eq!(without_hidden(text).0, clean);
        assert!(hidden_places(&shown(text)).is_empty());
    }
}

#[test]
fn ordinary_writing_raises_no_alarm() {
    for text in [
        "two\nlines\tand a tab\r\nand a Windows line",
        "👩‍💻 👨‍👩‍👧 🏳️‍🌈 ❤️ 1️⃣ 👍🏽 ☎︎ 🧑🏽‍🚒",
        "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} Scotland",
        "می‌خواهم بروم",
        "क्‍ष और क्‌ष",
        "ශ්‍රී ලංකා",
        "עברית\u{200f} (English)\u{200e}",
        "ภาษา\u{200b}ไทย",
        "葛\u{e0100}城市 東京",
        "搜索网页并返回结果 — „Gänsefüßchen“ … ½ ™ naïve",
        "Zażółć gęślą jaźń; Ελληνικά; Русский; 한국어; 日本語",
    ] {
        assert_eq!(kinds(text), [], "{}", text.escape_unicode());
        assert!(matches!(without_hidden(text).0, Cow::Borrowed(_)));
    }
}

#[test]
fn selectors_and_joiners_carry_no_message() {
    let smuggled = format!("😀{}", "\u{e0148}\u{e0155}".repeat(4));
    assert_eq!(kinds(&smuggled).len(), 8);
    assert!(is_hostile(&hidden_places(&smuggled)));
    assert_eq!(kinds("❤\u{fe0f}\u{fe0f}"), [Hidden::Selector]);
    assert_eq!(kinds("م\u{200c}\u{200c}"), [Hidden::ZeroWidth]);
    assert_eq!(kinds("🏴\u{e0068}\u{e0069}\u{e007f}").len(), 3);
}

#[test]
fn only_what_has_no_other_use_is_called_hostile() {
    let hostile = |text: &str| is_hostile(&hidden_places(text));
    assert!(hostile("\u{e0041}"));
    assert!(hostile("\u{202e}txt.exe"));
    assert!(hostile(&"\u{200b}".repeat(8)));
    assert!(!hostile(&"\u{200b}".repeat(7)));
    assert!(!hostile(&"word\u{200b}".repeat(50)));
    assert!(!hostile("\u{1b}[31mred\u{1b}[0m\u{ad}\u{feff}"));
}

#[test]
fn what_is_shown_spells_out_what_was_hidden() {
    assert_eq!(shown("a\u{1b}[31mred\u{202e}x\n"), "a\\u{1b}\\u{5b}\\u{33}\\u{31}\\u{6d}red\\u{202e}x\n");
    assert_eq!(shown("中文 👨‍👩‍👧"), "中文 👨‍👩‍👧");
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
    fn places_are_in_order_and_lie_between_characters(text in any_text()) {
        let mut end = 0;
        for place in hidden_places(&text) {
            prop_assert!(end <= place.start && place.start < place.end);
            prop_assert!(text.get(place.start..place.end).is_some());
            end = place.end;
        }
    }

    #[test]
    fn nothing_that_steers_or_reorders_survives(text in any_text()) {
        let (clean, _) = without_hidden(&text);
        let bad = |letter: char| (letter.is_control() && !matches!(letter, '\n' | '\t' | '\r'))
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        prop_assert!(!clean.chars().any(bad));
        prop_assert_eq!(hidden_places(&clean), []);
        prop_assert!(!shown(&text).chars().any(bad));
        prop_assert_eq!(hidden_places(&shown(&text)), []);
    }
}
