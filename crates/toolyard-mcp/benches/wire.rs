//! What it costs to get from the bytes of one message to what a client hands on, here and with rmcp.
//!
//! `scripts/wire-instructions` counts with callgrind: only what runs inside a function named `measured_…` is counted.
//! `cargo bench -p toolyard-mcp --bench wire` prints times, which are comparable within one run only.

mod messages;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use toolyard_core::{RawJson, ToolOutput, ToolSpec};
use toolyard_mcp::wire::{CallResult, Message, ToolsPage, WireLimits};

#[inline(never)]
fn measured_ours_call(bytes: Vec<u8>) -> Option<ToolOutput> {
    CallResult::read(&result(bytes)?).into_output().ok()
}

#[inline(never)]
fn measured_ours_list(bytes: Vec<u8>) -> Option<ToolsPage> {
    ToolsPage::read(&result(bytes)?, &WireLimits::default()).ok()
}

#[inline(never)]
fn measured_ours_specs(bytes: Vec<u8>) -> Option<Vec<ToolSpec>> {
    let page = ToolsPage::read(&result(bytes)?, &WireLimits::default()).ok()?;
    let spec = |raw: RawJson| Some(serde_json::from_str::<ToolSpec>(raw.get()).ok()?.with_raw(raw));
    page.tools.into_iter().map(spec).collect()
}

#[inline(never)]
fn measured_rmcp(bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
    serde_json::from_slice(bytes).ok()
}

/// The result in a message, from the bytes of its line on. The line is ours and becomes the result; rmcp reads the same
/// bytes out of a line that it keeps.
#[inline]
fn result(bytes: Vec<u8>) -> Option<RawJson> {
    let text = String::from_utf8(bytes).ok()?;
    match Message::read(text, &WireLimits::default()).ok()?.pop()? {
        Message::Response { outcome: Ok(result), .. } => Some(result),
        _ => None,
    }
}

/// How a message is read.
#[derive(Clone, Copy, PartialEq)]
enum Reader {
    OursCall,
    OursList,
    OursSpecs,
    Rmcp,
}

/// Reads a message, and says whether everything that should be in it was there.
fn read(reader: Reader, bytes: &[u8]) -> bool {
    match reader {
        Reader::OursCall => {
            measured_ours_call(bytes.to_vec()).is_some_and(|output| !black_box(output).content.is_empty())
        }
        Reader::OursList => {
            measured_ours_list(bytes.to_vec()).is_some_and(|page| !black_box(page).tools.is_empty())
        }
        Reader::OursSpecs => {
            measured_ours_specs(bytes.to_vec()).is_some_and(|specs| !black_box(specs).is_empty())
        }
        Reader::Rmcp => match black_box(measured_rmcp(bytes)) {
            Some(JsonRpcMessage::Response(response)) => match response.result {
                ServerResult::CallToolResult(result) => !result.content.is_empty(),
                ServerResult::ListToolsResult(list) => !list.tools.is_empty(),
                _ => false,
            },
            _ => false,
        },
    }
}

#[expect(clippy::print_stdout, clippy::exit, reason = "a program for people and for the script")]
fn main() {
    // cargo passes flags of its own when it runs benches; only the words of the script count.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let file = words.get(2).map(String::as_str);
    if let [reader, message, ..] = words.as_slice() {
        let reader = match reader.as_str() {
            "ours_call" => Reader::OursCall,
            "ours_list" => Reader::OursList,
            "ours_specs" => Reader::OursSpecs,
            _ => Reader::Rmcp,
        };
        let bytes = messages::message(message, file);
        // Not found, or not read: the script must not take that for fast.
        let is_read = bytes.is_some_and(|bytes| read(reader, &bytes));
        std::process::exit(i32::from(!is_read));
    }
    for message in ["small", "list", "structured", "text"] {
        let Some(bytes) = messages::message(message, None) else { continue };
        let ours = if message == "list" { Reader::OursList } else { Reader::OursCall };
        let (ours, rmcp) = (best(ours, &bytes), best(Reader::Rmcp, &bytes));
        let ratio = rmcp.as_secs_f64() / ours.as_secs_f64();
        println!(
            "{message:<12}{:>9} bytes  ours {ours:>12.2?}  rmcp {rmcp:>12.2?}  {ratio:.1}x",
            bytes.len()
        );
    }
}

/// The best time of many.
fn best(reader: Reader, bytes: &[u8]) -> Duration {
    let until = Instant::now() + Duration::from_secs(1);
    let mut best = Duration::MAX;
    while Instant::now() < until {
        let start = Instant::now();
        let is_read = black_box(read(reader, bytes));
        best = best.min(if is_read { start.elapsed() } else { Duration::MAX });
    }
    best
}
