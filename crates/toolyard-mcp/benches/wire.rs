//! The cost of decoding one message, compared with rmcp.
//!
//! `scripts/wire-instructions` counts instructions inside `measured` with callgrind.
//! `cargo bench -p toolyard-mcp --bench wire` prints times, which are comparable within one run only.

mod messages;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use toolyard_core::{RawJson, ToolOutput, ToolSpec};
use toolyard_mcp::{CallResult, ListPage, Message, WireLimits};

#[inline(never)]
fn measured<T>(read: impl Fn(Vec<u8>) -> T, bytes: Vec<u8>) -> T {
    read(bytes)
}

fn ours_call(bytes: Vec<u8>) -> Option<ToolOutput> {
    CallResult::read(&result(bytes)?).into_output().ok()
}

fn ours_list(bytes: Vec<u8>) -> Option<ListPage> {
    ListPage::read(&result(bytes)?, "tools/list", "tools", &WireLimits::default()).ok()
}

fn ours_specs(bytes: Vec<u8>) -> Option<Vec<ToolSpec>> {
    let spec = |raw: RawJson| Some(serde_json::from_str::<ToolSpec>(raw.get()).ok()?.with_raw(raw));
    ours_list(bytes)?.entries.into_iter().map(spec).collect()
}

fn rmcp(bytes: Vec<u8>) -> (Option<ServerJsonRpcMessage>, Vec<u8>) {
    (serde_json::from_slice(&bytes).ok(), bytes)
}

/// Decodes the result of a message. The result takes over the buffer; rmcp copies out of it.
#[inline]
fn result(bytes: Vec<u8>) -> Option<RawJson> {
    let text = String::from_utf8(bytes).ok()?;
    match Message::read(text, &WireLimits::default()).ok()?.pop()? {
        Message::Response { outcome: Ok(result), .. } => Some(result),
        _ => None,
    }
}

/// Decodes a message with one of the readers. A failed decode must not count as fast.
fn read(way: &str, bytes: Vec<u8>) -> bool {
    match way {
        "ours_call" => once_more(ours_call, bytes).is_some_and(|output| !output.content.is_empty()),
        "ours_list" => once_more(ours_list, bytes).is_some_and(|page| page.entries.len() == 46),
        "ours_specs" => once_more(ours_specs, bytes).is_some_and(|specs| specs.len() == 46),
        _ => match once_more(rmcp, bytes).0 {
            Some(JsonRpcMessage::Response(response)) => match response.result {
                ServerResult::CallToolResult(result) => !result.content.is_empty(),
                ServerResult::ListToolsResult(list) => list.tools.len() == 46,
                _ => false,
            },
            _ => false,
        },
    }
}

/// Measures the second run: the first one pays for initial allocations and lazy binding.
fn once_more<T>(read: impl Fn(Vec<u8>) -> T, bytes: Vec<u8>) -> T {
    drop(black_box(read(bytes.clone())));
    measured(read, black_box(bytes))
}

#[expect(clippy::print_stdout, reason = "a program that prints its results")]
fn main() {
    // cargo passes its own flags to benches.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let [way, message, ..] = words.as_slice() {
        let bytes = messages::message(message, words.get(2).map(String::as_str));
        let is_read = bytes.is_some_and(|bytes| read(way, bytes));
        std::process::exit(i32::from(!is_read));
    }
    for message in ["small", "list", "structured", "text"] {
        let Some(bytes) = messages::message(message, None) else { continue };
        let ours = if message == "list" { best(ours_list, &bytes) } else { best(ours_call, &bytes) };
        let rmcp = best(rmcp, &bytes);
        let ratio = rmcp.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{message:<12}{:>9} bytes  ours {ours:>12.2?}  rmcp {rmcp:>12.2?}  {ratio:.1}x",
            bytes.len()
        );
    }
}

/// The best of many runs.
fn best<T>(read: impl Fn(Vec<u8>) -> T + Copy, bytes: &[u8]) -> Duration {
    let until = Instant::now() + Duration::from_secs(1);
    let mut best = Duration::MAX;
    while Instant::now() < until {
        let bytes = bytes.to_vec();
        let start = Instant::now();
        black_box(measured(read, black_box(bytes)));
        best = best.min(start.elapsed());
    }
    best
}
