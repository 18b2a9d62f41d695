//! Mutates the corpus at random and checks the invariants of the parser.
//!
//! Runs for `TOOLYARD_FUZZ_SECONDS`, by default a few (`just fuzz-parser MINUTES`). A failure names the seed;
//! `TOOLYARD_FUZZ_SEED` repeats it.

use std::{
    env, fs,
    path::Path,
    time::{Duration, Instant},
};

use fastrand::Rng;
use serde_json::Value;
use toolyard_model::tool_call_parser::{ParsedText, StreamingParser, parse_arguments, parse_tool_calls};

/// Fragments with a meaning in some format.
const FRAGMENTS: [&str; 75] = [
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus");
    let files = fs::read_dir(folder).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let text = |line: &str| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned();
    let mut texts: Vec<String> = files.flat_map(|file| file.lines().map(text).collect::<Vec<_>>()).collect();
    texts.sort();
    texts
}

/// A random character boundary.
fn random_boundary(text: &str, rng: &mut Rng) -> usize {
    let mut index = rng.usize(..=text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// Changes a text once.
fn mutate(text: &mut String, corpus: &[String], rng: &mut Rng) {
    let (a, b) = (random_boundary(text, rng), random_boundary(text, rng));
    let (from, to) = (a.min(b), a.max(b));
    match rng.u8(..8) {
        0 => text.truncate(to),
        1 if to - from < 40 => text.replace_range(from..to, ""),
        2 | 3 => text.insert_str(from, FRAGMENTS[rng.usize(..FRAGMENTS.len())]),
        4 => {
            let other = &corpus[rng.usize(..corpus.len())];
            let (a, b) = (random_boundary(other, rng), random_boundary(other, rng));
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

fn parse_in_pieces(text: &str, rng: &mut Rng) -> (String, ParsedText) {
    let mut parser = StreamingParser::new(is_tool);
    let (mut shown, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let mut index = rng.usize(1..=rest.len().min(24));
        while !rest.is_char_boundary(index) {
            index += 1;
        }
        let (piece, after) = rest.split_at(index);
        shown.push_str(&parser.push(piece));
        rest = after;
    }
    let (last, parsed) = parser.finish();
    (shown + &last, parsed)
}

/// Checks what must hold for any text.
fn check(text: &str, rng: &mut Rng) {
    let whole = parse_tool_calls(text, &is_tool);
    let (shown, parsed) = parse_in_pieces(text, rng);
    assert_eq!(parsed, whole, "the pieces changed the result");
    assert_eq!(shown, whole.text, "the pieces changed the text");
    // Quotations are not calls.
    let line = text.replace(['\n', '\r'], " ");
    assert_eq!(parse_tool_calls(&format!("> {line}"), &is_tool).calls, [], "a call from a block quote");
    let fenced = format!("Text:\n\n~~~~~~~~rust\n{}\n~~~~~~~~\n", text.replace("~~~~~~~~", ""));
    assert_eq!(parse_tool_calls(&fenced, &is_tool).calls, [], "a call from a block of code");
    let inline = format!("Text: `````{}````` end", line.replace('`', ""));
    assert_eq!(parse_tool_calls(&inline, &is_tool).calls, [], "a call from inline code");
    // Without tags, only known tools are called.
    let plain = text.replace('<', "");
    let unknown = parse_tool_calls(&plain, &is_tool).calls.into_iter().filter(|call| !is_tool(&call.name));
    assert_eq!(
        unknown.map(|call| call.name).collect::<Vec<_>>(),
        Vec::<String>::new(),
        "a call of an unknown tool"
    );
    let _ = parse_arguments(text);
}

#[test]
fn any_text_keeps_the_invariants() {
    let seconds = env::var("TOOLYARD_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let given_seed = env::var("TOOLYARD_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
    let mut seed: u64 = given_seed.unwrap_or_else(|| fastrand::u64(..));
    let corpus = corpus();
    let started = Instant::now();
    let mut texts = 0_u64;
    while started.elapsed() < Duration::from_secs(seconds) {
        let mut rng = Rng::with_seed(seed);
        let mut text = corpus[rng.usize(..corpus.len())].clone();
        for _ in 0..rng.usize(1..12) {
            mutate(&mut text, &corpus, &mut rng);
        }
        let outcome = std::panic::catch_unwind(|| check(&text, &mut Rng::with_seed(seed)));
        assert!(outcome.is_ok(), "seed {seed}: {text:?}");
        texts += 1;
        seed = seed.wrapping_add(1);
    }
    println!("{texts} texts in {:.0?}", started.elapsed());
}

/// Parses long texts of fragments that start something without end.
#[test]
fn parsing_time_is_linear() {
    let mut patterns: Vec<String> = FRAGMENTS.iter().map(|fragment| (*fragment).to_owned()).collect();
    let mut rng = Rng::with_seed(7);
    for _ in 0..40 {
        let fragments = (0..rng.usize(2..4)).map(|_| FRAGMENTS[rng.usize(..FRAGMENTS.len())]);
        patterns.push(fragments.collect());
    }
    patterns.extend(corpus().into_iter().step_by(40));
    for pattern in patterns {
        let time = |bytes: usize| {
            let text = pattern.repeat(bytes / pattern.len().max(1));
            let started = Instant::now();
            let _ = parse_tool_calls(&text, &is_tool);
            started.elapsed()
        };
        let (short, long) = (time(8 << 10), time(64 << 10));
        // The text is eight times as long, so a quadratic parser takes 64 times. Small times mean nothing on a busy machine.
        assert!(long < short * 32 || long < Duration::from_millis(500), "{pattern:?}: {short:?}, {long:?}");
    }
}

/// Measures against a short text, since the time itself depends on how busy the machine is.
#[test]
fn parsing_time_is_linear_for_streamed_text() {
    let patterns: [(&str, &str, &str); 7] = [
        ("<tool_call>{\"name\": \"write_file\", \"arguments\": {\"content\": \"", "x", "\"}}</tool_call>"),
        ("```json\n{\"a\": \"", "x", ""),
        ("", "}", ""),
        ("<tool_call>", "[", ""),
        ("`", "x", ""),
        ("<think>", "x", ""),
        ("{\"name\": \"", "}", ""),
    ];
    for (before, repeated, after) in patterns {
        let time = |repetitions: usize| {
            let text = format!("{before}{}{after}", repeated.repeat(repetitions));
            let started = Instant::now();
            let mut parser = StreamingParser::new(is_tool);
            for piece in text.as_bytes().chunks(4) {
                parser.push(std::str::from_utf8(piece).unwrap());
            }
            parser.finish();
            started.elapsed()
        };
        let (short, long) = (time(50_000), time(400_000));
        // The text is eight times as long, so a quadratic parser takes 64 times.
        assert!(
            long < short * 32 || long < Duration::from_millis(500),
            "{before:?} and many {repeated:?}: {short:?}, {long:?}"
        );
    }
}
