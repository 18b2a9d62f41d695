//! The cost of decoding one message, compared with rmcp.
//!
//! `bench/load/instructions/wire` counts instructions inside `measured` with callgrind.
//! `cargo bench -p toolyard-mcp --bench wire` prints times, which are comparable within one run only.

mod messages;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use toolyard_core::{RawJson, ToolOutput, ToolSpec};
use toolyard_mcp::{CallResult, ListPage, Message, WireLimits};

/// The function whose instructions `bench/load/instructions/wire` counts.
#[inline(never)]
fn measured<T>(read: impl Fn(Vec<u8>) -> T, bytes: Vec<u8>) -> T {
    read(bytes)
}

fn ours_call(bytes: Vec<u8>) -> Option<ToolOutput> {
    CallResult::read(&decode_result(bytes)?).into_output().ok()
}

fn ours_list(bytes: Vec<u8>) -> Option<ListPage> {
    ListPage::read(&decode_result(bytes)?, "tools/list", "tools", &WireLimits::default()).ok()
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
fn decode_result(bytes: Vec<u8>) -> Option<RawJson> {
    let text = String::from_utf8(bytes).ok()?;
    match Message::read(text, &WireLimits::default()).ok()?.pop()? {
        Message::Response { outcome: Ok(result), .. } => Some(result),
        _ => None,
    }
}

/// Decodes a message with the named decoder. Returns whether it succeeded: a failed decode must not count as fast.
fn decode(decoder: &str, bytes: Vec<u8>) -> bool {
    match decoder {
        "ours_call" => measure_second_run(ours_call, bytes).is_some_and(|output| !output.content.is_empty()),
        "ours_list" => measure_second_run(ours_list, bytes)
            .is_some_and(|page| page.entries.len() == messages::TOOL_COUNT),
        "ours_specs" => {
            measure_second_run(ours_specs, bytes).is_some_and(|specs| specs.len() == messages::TOOL_COUNT)
        }
        _ => match measure_second_run(rmcp, bytes).0 {
            Some(JsonRpcMessage::Response(response)) => match response.result {
                ServerResult::CallToolResult(result) => !result.content.is_empty(),
                ServerResult::ListToolsResult(list) => list.tools.len() == messages::TOOL_COUNT,
                _ => false,
            },
            _ => false,
        },
    }
}

/// Measures the second run: the first one pays for initial allocations and lazy binding.
fn measure_second_run<T>(read: impl Fn(Vec<u8>) -> T, bytes: Vec<u8>) -> T {
    drop(black_box(read(bytes.clone())));
    measured(read, black_box(bytes))
}

#[expect(clippy::print_stdout, reason = "a program that prints its results")]
fn main() {
    // cargo passes its own flags to benches.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let [decoder, message, ..] = arguments.as_slice() {
        let bytes = messages::message(message, arguments.get(2).map(String::as_str));
        let is_decoded = bytes.is_some_and(|bytes| decode(decoder, bytes));
        std::process::exit(i32::from(!is_decoded));
    }
    for message in ["small", "list", "structured", "text"] {
        let Some(bytes) = messages::message(message, None) else { continue };
        let ours = if message == "list" {
            shortest_time(ours_list, &bytes)
        } else {
            shortest_time(ours_call, &bytes)
        };
        let rmcp = shortest_time(rmcp, &bytes);
        let ratio = rmcp.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{message:<12}{:>9} bytes  ours {ours:>12.2?}  rmcp {rmcp:>12.2?}  {ratio:.1}x",
            bytes.len()
        );
    }
}

/// The shortest time of all runs within one second.
fn shortest_time<T>(read: impl Fn(Vec<u8>) -> T + Copy, bytes: &[u8]) -> Duration {
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut best = Duration::MAX;
    while Instant::now() < deadline {
        let bytes = bytes.to_vec();
        let start = Instant::now();
        black_box(measured(read, black_box(bytes)));
        best = best.min(start.elapsed());
    }
    best
}
