//! Damages outputs of the corpus in every way that comes to mind and checks what must hold of any text whatsoever.
//!
//! It goes on for `TOOLYARD_FUZZ_SECONDS`, a few if that is not set (`just fuzz-parser MINUTES`). A failure names the
//! seed; `TOOLYARD_FUZZ_SEED` begins there again.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::{
    env, fs,
    path::Path,
    time::{Duration, Instant},
};

use fastrand::Rng;
use serde_json::Value;
use toolyard_model::tool_call_tag::{CallSplitter, TextCalls, read_arguments, read_calls};

/// Pieces that mean something somewhere.
const SCRAPS: [&str; 75] = [
    "<tool_call>",
    "</tool_call>",
    "<tools>",
    "</tools>",
    "<function=get_time>",
    "</function>",
    "<think>",
    "</think>",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "`",
    "``",
    "```",
    "```json\n",
    "\n```\n",
    "\n",
    "\n\n",
    "> ",
    "    ",
    "\t",
    "For example:",
    "例如：",
    "Action: get_time\n",
    "Action Input: ",
    "[TOOL_CALLS]",
    "[get_time(a=1)]",
    "<|python_tag|>",
    "<|im_end|>",
    ",",
    ":",
    "\\",
    "<invoke name=\"get_time\">",
    "<parameter name=\"a\">",
    "</parameter>",
    "</invoke>",
    "// c\n",
    "/*",
    "*/",
    "\\u12",
    "é",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "function",
    "get_time",
    "<!--",
    "-->",
    "~~~\n",
    "Observation:",
    "<tool_response>",
    "</tool_response>",
    "(",
    ")",
    "=",
    "1",
    "-1.5e3",
    "<|channel|>",
    "<|message|>",
    "to=functions.get_time",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "\"\"\"",
    "'''",
    "“",
    "”",
    "：",
    "## Example\n",
    "null",
    "<",
    "{\"name\": \"get_time\", \"arguments\": {}}",
];

fn is_tool(name: &str) -> bool {
    matches!(name, "get_time" | "calculate" | "read_data_from_excel" | "write_file")
}

fn corpus() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let files = fs::read_dir(folder).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let text = |line: &str| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned();
    let mut texts: Vec<String> = files.flat_map(|file| file.lines().map(text).collect::<Vec<_>>()).collect();
    texts.sort();
    texts
}

/// A place in a text where it may be cut.
fn place(text: &str, rng: &mut Rng) -> usize {
    let mut at = rng.usize(..=text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// One change to a text.
fn damage(text: &mut String, corpus: &[String], rng: &mut Rng) {
    let (a, b) = (place(text, rng), place(text, rng));
    let (from, to) = (a.min(b), a.max(b));
    match rng.u8(..8) {
        0 => text.truncate(to),
        1 if to - from < 40 => text.replace_range(from..to, ""),
        2 | 3 => text.insert_str(from, SCRAPS[rng.usize(..SCRAPS.len())]),
        4 => {
            let other = &corpus[rng.usize(..corpus.len())];
            let (a, b) = (place(other, rng), place(other, rng));
            text.insert_str(from, other.get(a.min(b)..a.max(b)).unwrap());
        }
        5 => {
            let part = text.get(from..to).unwrap().to_owned();
            text.insert_str(from, &part);
        }
        6 => text.insert(from, rng.char(..)),
        _ => text.drain(..from).for_each(drop),
    }
    let end = text.len().min(6_000);
    let end = (0..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap();
    text.truncate(end);
}

fn in_pieces(text: &str, rng: &mut Rng) -> (String, TextCalls) {
    let mut splitter = CallSplitter::new(is_tool);
    let (mut shown, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let mut at = rng.usize(1..=rest.len().min(24));
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        let (piece, after) = rest.split_at(at);
        shown.push_str(&splitter.push(piece));
        rest = after;
    }
    let (last, found) = splitter.finish();
    (shown + &last, found)
}

/// What must hold of any text.
fn check(text: &str, rng: &mut Rng) {
    let whole = read_calls(text, &is_tool);
    let (shown, found) = in_pieces(text, rng);
    assert_eq!(found, whole, "pieces matter");
    assert_eq!(shown, whole.rest, "something else was shown");
    // Nothing that is quoted is a call.
    let line = text.replace(['\n', '\r'], " ");
    assert_eq!(read_calls(&format!("> {line}"), &is_tool).calls, [], "a call from a block quote");
    let fenced = format!("Text:\n\n~~~~~~~~rust\n{}\n~~~~~~~~\n", text.replace("~~~~~~~~", ""));
    assert_eq!(read_calls(&fenced, &is_tool).calls, [], "a call from a block of code");
    let inline = format!("Text: `````{}````` end", line.replace('`', ""));
    assert_eq!(read_calls(&inline, &is_tool).calls, [], "a call from inline code");
    // Without tags only tools that exist are called.
    let mut plain = text.replace(['<', '｜', '`', '~'], "");
    while plain.contains("[TOOL") || plain.contains("[FUNCTION") {
        plain = plain.replace("[TOOL", "").replace("[FUNCTION", "");
    }
    let strangers = read_calls(&plain, &is_tool).calls.into_iter().filter(|call| !is_tool(&call.name));
    assert_eq!(
        strangers.map(|call| call.name).collect::<Vec<_>>(),
        Vec::<String>::new(),
        "a stranger was called"
    );
    let _ = read_arguments(text);
}

#[test]
fn any_text_is_read_without_harm() {
    let seconds = env::var("TOOLYARD_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let first = env::var("TOOLYARD_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
    let mut seed: u64 = first.unwrap_or_else(|| fastrand::u64(..));
    let corpus = corpus();
    let began = Instant::now();
    let mut texts = 0_u64;
    while began.elapsed() < Duration::from_secs(seconds) {
        let mut rng = Rng::with_seed(seed);
        let mut text = corpus[rng.usize(..corpus.len())].clone();
        for _ in 0..rng.usize(1..12) {
            damage(&mut text, &corpus, &mut rng);
        }
        let outcome = std::panic::catch_unwind(|| check(&text, &mut Rng::with_seed(seed)));
        assert!(outcome.is_ok(), "seed {seed}: {text:?}");
        texts += 1;
        seed = seed.wrapping_add(1);
    }
    println!("{texts} texts in {:.0?}", began.elapsed());
}

/// Long texts of pieces that begin something and never end it.
#[test]
fn time_is_linear() {
    let mut patterns: Vec<String> = SCRAPS.iter().map(|scrap| (*scrap).to_owned()).collect();
    let mut rng = Rng::with_seed(7);
    for _ in 0..40 {
        let scraps = (0..rng.usize(2..4)).map(|_| SCRAPS[rng.usize(..SCRAPS.len())]);
        patterns.push(scraps.collect());
    }
    patterns.extend(corpus().into_iter().step_by(40));
    for pattern in patterns {
        let time = |bytes: usize| {
            let text = pattern.repeat(bytes / pattern.len().max(1));
            let began = Instant::now();
            let _ = read_calls(&text, &is_tool);
            began.elapsed()
        };
        let (short, long) = (time(8 << 10), time(64 << 10));
        // Eight times as long; a quadratic reader takes 64 times. Small times say nothing on a busy machine.
        assert!(long < short * 32 || long < Duration::from_millis(500), "{pattern:?}: {short:?}, {long:?}");
    }
}

/// The same for texts that come in small pieces.
#[test]
fn time_is_linear_in_pieces() {
    let content = "x".repeat(400_000);
    for text in [
        format!(
            "<tool_call>{{\"name\": \"write_file\", \"arguments\": {{\"content\": \"{content}\"}}}}</tool_call>"
        ),
        format!("```json\n{{\"a\": \"{content}"),
        "}".repeat(400_000),
        format!("<tool_call>{}", "[".repeat(400_000)),
        format!("`{content}"),
        format!("<think>{content}"),
        format!("{{\"name\": \"{}", "}".repeat(300_000)),
    ] {
        let began = Instant::now();
        let mut splitter = CallSplitter::new(is_tool);
        for piece in text.as_bytes().chunks(4) {
            splitter.push(std::str::from_utf8(piece).unwrap());
        }
        splitter.finish();
        let start: String = text.chars().take(30).collect();
        assert!(began.elapsed() < Duration::from_secs(10), "{start}: {:?}", began.elapsed());
    }
}
