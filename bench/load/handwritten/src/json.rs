//! JSON readers: find the fields of a JSON-RPC message and keep its payload as text.
//!
//! All readers check the syntax of the whole message and refuse a repeated field. The unchecked functions of sonic-rs are
//! left out: messages come from outside.

#[path = "../../../../crates/toolyard-mcp/benches/messages/mod.rs"]
mod messages;

use std::{borrow::Cow, hint::black_box, ops::Range, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;
use sonic_rs::{FastStr, LazyValue, to_object_iter};
use toolyard_core::{JsonCursor, JsonText, RawJson, SharedText};

use crate::Outcome;

/// The messages, and how often each is read in the short run.
pub(crate) const MESSAGES: [(&str, usize); 5] =
    [("small", 1_000), ("request", 1_000), ("list", 20), ("structured", 5), ("text", 5)];
/// Readers that borrow the message.
pub(crate) const BORROWING_WAYS: [&str; 4] = ["ours", "serde_json", "sonic-rs", "sonic-rs-serde"];
/// Readers whose payload outlives the message.
pub(crate) const OWNING_WAYS: [&str; 4] = ["ours", "serde_json", "serde_json-shared", "sonic-rs"];
/// Readers of a list of tools, with each definition as an owned text.
pub(crate) const LISTING_WAYS: [&str; 3] = ["ours", "serde_json", "sonic-rs"];
/// Only copies the message, which every owning reader needs for each iteration.
pub(crate) const COPY_ONLY: &str = "copy";

const MAX_DEPTH: usize = 128;
const LISTED_TOOLS: usize = 46;
const MESSAGE_ID: u64 = 7;

/// The bytes of a message.
pub(crate) fn message(name: &str) -> Outcome<String> {
    if name == "request" {
        return Ok(request());
    }
    let bytes = messages::message(name, None).ok_or_else(|| format!("unknown message {name}"))?;
    Ok(String::from_utf8(bytes)?)
}

/// A tool call of 300 bytes.
fn request() -> String {
    let arguments = serde_json::json!({
        "workbook": "/srv/reports/2026/november.xlsx", "sheet": "Überblick", "range": "A1:F40", "header": true, "first": 12,
        "filter": {"column": "region", "values": ["north", "south"]}, "note": "only the \"open\" rows, by date",
    });
    let params = serde_json::json!({"name": "read_range", "arguments": arguments});
    serde_json::json!({"jsonrpc": "2.0", "id": MESSAGE_ID, "method": "tools/call", "params": params})
        .to_string()
}

/// Reads a message `count` times.
pub(crate) fn run(task: &str, way: &str, message_name: &str, count: usize) -> Outcome {
    let text = message(message_name)?;
    let payload_bytes = serde_json::from_str::<Envelope<'_>>(&text)?.payload_text().map_or(0, str::len);
    let read = reader(task, way).ok_or_else(|| format!("unknown reader {task} {way}"))?;
    for _ in 0..count {
        // A failed read must not count as fast.
        if !black_box(read)(black_box(&text), payload_bytes) {
            return Err(format!("{way} did not read the message {message_name}").into());
        }
    }
    Ok(())
}

/// Reads one message and checks the id and the length of the payload.
type Reader = fn(&str, usize) -> bool;

fn reader(task: &str, way: &str) -> Option<Reader> {
    Some(match (task, way) {
        ("borrow", "ours") => |text, bytes| {
            cursor_fields(text).is_some_and(|fields| is_right(fields.id(), fields.payload_text(), bytes))
        },
        ("borrow", "serde_json") => |text, bytes| {
            let envelope = serde_json::from_str::<Envelope<'_>>(text);
            envelope.is_ok_and(|envelope| {
                is_right(envelope.id(), envelope.payload_text().unwrap_or_default(), bytes)
            })
        },
        ("borrow", "sonic-rs") => |text, bytes| {
            sonic_fields(text).is_some_and(|fields| is_right(fields.id(), fields.payload_text(), bytes))
        },
        ("borrow", "sonic-rs-serde") => |text, bytes| {
            let fields = sonic_rs::from_str::<SonicFields<'_>>(text);
            fields.is_ok_and(|fields| is_right(fields.id(), fields.payload_text(), bytes))
        },
        ("own", "ours") => |text, bytes| {
            let owned = black_box(own_ours(text.to_owned()));
            owned.is_some_and(|(id, payload)| is_right(id, payload.get(), bytes))
        },
        ("own", "serde_json") => |text, bytes| {
            let owned = black_box(own_serde(&text.to_owned()));
            owned.is_some_and(|(id, payload)| is_right(id, payload.get(), bytes))
        },
        ("own", "serde_json-shared") => |text, bytes| {
            let owned = black_box(own_serde_shared(text.to_owned()));
            owned.is_some_and(|(id, payload)| is_right(id, payload.get(), bytes))
        },
        ("own", "sonic-rs") => |text, bytes| {
            let owned = black_box(own_sonic(text.to_owned()));
            owned.is_some_and(|(id, payload)| is_right(id, &payload, bytes))
        },
        ("list", "ours") => {
            |text, _| black_box(list_ours(text.to_owned())).is_some_and(|tools| tools.len() == LISTED_TOOLS)
        }
        ("list", "serde_json") => {
            |text, _| black_box(list_serde(text.to_owned())).is_some_and(|tools| tools.len() == LISTED_TOOLS)
        }
        ("list", "sonic-rs") => {
            |text, _| black_box(list_sonic(text.to_owned())).is_some_and(|tools| tools.len() == LISTED_TOOLS)
        }
        ("own" | "list", COPY_ONLY) => |text, _| !black_box(text.to_owned()).is_empty(),
        _ => return None,
    })
}

fn is_right(id: Option<u64>, payload: &str, bytes: usize) -> bool {
    id == Some(MESSAGE_ID) && payload.len() == bytes
}

/// Reads a message nested a million levels deep, which a peer may send within the limit of 4 MiB. Succeeds if the reader
/// accepts it.
pub(crate) fn read_deep(way: &str) -> Outcome {
    const LEVELS: usize = 1_000_000;
    let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{}{}}}"#, "[".repeat(LEVELS), "]".repeat(LEVELS));
    let is_accepted = match way {
        "ours" => cursor_fields(&text).is_some(),
        "serde_json" => serde_json::from_str::<Envelope<'_>>(&text).is_ok(),
        "sonic-rs" => sonic_fields(&text).is_some(),
        "sonic-rs-serde" => sonic_rs::from_str::<SonicFields<'_>>(&text).is_ok(),
        _ => return Err(format!("unknown reader {way}").into()),
    };
    if is_accepted { Ok(()) } else { Err("refused".into()) }
}

/// The fields that `toolyard_mcp::Message` looks for, found by our cursor.
#[derive(Default)]
struct CursorFields<'t> {
    version: Option<JsonText<'t>>,
    id: Option<JsonText<'t>>,
    method: Option<JsonText<'t>>,
    params: Option<JsonText<'t>>,
    result: Option<JsonText<'t>>,
    error: Option<JsonText<'t>>,
}

impl<'t> CursorFields<'t> {
    fn read(mut cursor: JsonCursor<'t>) -> Option<Self> {
        let mut fields = Self::default();
        if !cursor.enter_object().ok()? {
            return None;
        }
        let mut is_repeated = false;
        while let Some(key) = cursor.next_key().ok()? {
            let value = cursor.next_value().ok()?;
            let field = match &*key {
                "jsonrpc" => &mut fields.version,
                "id" => &mut fields.id,
                "method" => &mut fields.method,
                "params" => &mut fields.params,
                "result" => &mut fields.result,
                "error" => &mut fields.error,
                _ => continue,
            };
            is_repeated |= field.replace(value).is_some();
        }
        cursor.end().ok()?;
        (!is_repeated).then_some(fields)
    }

    fn id(&self) -> Option<u64> {
        self.id.and_then(JsonText::number)
    }

    fn payload(&self) -> Option<JsonText<'t>> {
        black_box((self.version, self.method, self.error));
        self.params.or(self.result)
    }

    fn payload_text(&self) -> &'t str {
        self.payload().map_or("", JsonText::get)
    }
}

fn cursor_fields(text: &str) -> Option<CursorFields<'_>> {
    CursorFields::read(JsonCursor::new(text, MAX_DEPTH))
}

/// The same fields as raw values of serde_json.
#[derive(Deserialize)]
struct Envelope<'t> {
    #[serde(borrow, rename = "jsonrpc")]
    version: Option<&'t RawValue>,
    #[serde(borrow)]
    id: Option<&'t RawValue>,
    #[serde(borrow)]
    method: Option<&'t RawValue>,
    #[serde(borrow)]
    params: Option<&'t RawValue>,
    #[serde(borrow)]
    result: Option<&'t RawValue>,
    #[serde(borrow)]
    error: Option<&'t RawValue>,
}

impl<'t> Envelope<'t> {
    fn id(&self) -> Option<u64> {
        self.id.and_then(|id| id.get().parse().ok())
    }

    fn payload(&self) -> Option<&'t RawValue> {
        black_box((self.version, self.method, self.error));
        self.params.or(self.result)
    }

    fn payload_text(&self) -> Option<&'t str> {
        self.payload().map(RawValue::get)
    }
}

/// The same fields as lazy values of sonic-rs.
#[derive(Default, Deserialize)]
struct SonicFields<'t> {
    #[serde(borrow, rename = "jsonrpc")]
    version: Option<LazyValue<'t>>,
    #[serde(borrow)]
    id: Option<LazyValue<'t>>,
    #[serde(borrow)]
    method: Option<LazyValue<'t>>,
    #[serde(borrow)]
    params: Option<LazyValue<'t>>,
    #[serde(borrow)]
    result: Option<LazyValue<'t>>,
    #[serde(borrow)]
    error: Option<LazyValue<'t>>,
}

impl<'t> SonicFields<'t> {
    /// Unlike the other readers, the iterator does not look at what follows the object.
    fn read(entries: sonic_rs::ObjectJsonIter<'t>) -> Option<Self> {
        let mut fields = Self::default();
        let mut is_repeated = false;
        for entry in entries {
            let (key, value): (Cow<'t, str>, LazyValue<'t>) = entry.ok()?;
            let field = match &*key {
                "jsonrpc" => &mut fields.version,
                "id" => &mut fields.id,
                "method" => &mut fields.method,
                "params" => &mut fields.params,
                "result" => &mut fields.result,
                "error" => &mut fields.error,
                _ => continue,
            };
            is_repeated |= field.replace(value).is_some();
        }
        (!is_repeated).then_some(fields)
    }

    fn id(&self) -> Option<u64> {
        self.id.as_ref().and_then(|id| id.as_raw_str().parse().ok())
    }

    fn payload(&self) -> Option<&LazyValue<'t>> {
        black_box((&self.version, &self.method, &self.error));
        self.params.as_ref().or(self.result.as_ref())
    }

    fn payload_text(&self) -> &str {
        self.payload().map_or("", LazyValue::as_raw_str)
    }
}

fn sonic_fields(text: &str) -> Option<SonicFields<'_>> {
    SonicFields::read(to_object_iter(text))
}

fn own_ours(text: String) -> Option<(Option<u64>, RawJson)> {
    let text = SharedText::from(text);
    let fields = CursorFields::read(JsonCursor::indexing(&text, MAX_DEPTH))?;
    Some((fields.id(), text.part(fields.payload()?)))
}

fn own_serde(text: &str) -> Option<(Option<u64>, Box<RawValue>)> {
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    Some((envelope.id(), envelope.payload()?.to_owned()))
}

/// A part of a shared text whose end serde_json found: our `RawJson` without our cursor.
struct SharedPart {
    text: Arc<String>,
    range: Range<usize>,
}

impl SharedPart {
    fn get(&self) -> &str {
        self.text.get(self.range.clone()).unwrap_or_default()
    }
}

fn own_serde_shared(text: String) -> Option<(Option<u64>, SharedPart)> {
    let text = Arc::new(text);
    let envelope: Envelope<'_> = serde_json::from_str(&text).ok()?;
    let payload = envelope.payload_text()?;
    let start = payload.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let (id, range) = (envelope.id(), start..start + payload.len());
    Some((id, SharedPart { text, range }))
}

fn own_sonic(text: String) -> Option<(Option<u64>, FastStr)> {
    let text = FastStr::from(text);
    let fields = SonicFields::read(to_object_iter(&text))?;
    Some((fields.id(), fields.payload()?.as_raw_faststr()))
}

fn list_ours(text: String) -> Option<Vec<RawJson>> {
    let (_, result) = own_ours(text)?;
    let mut tools = Vec::new();
    let mut cursor = JsonCursor::of(&result);
    cursor.enter_object().ok()?;
    while let Some(key) = cursor.next_key().ok()? {
        if key == "tools" && cursor.enter_array().ok()? {
            while cursor.next_item().ok()? {
                tools.push(result.part(cursor.next_value().ok()?));
            }
        } else {
            cursor.next_value().ok()?;
        }
    }
    Some(tools)
}

fn list_serde(text: String) -> Option<Vec<Box<RawValue>>> {
    #[derive(Deserialize)]
    struct Page {
        tools: Vec<Box<RawValue>>,
    }
    let (_, result) = own_serde_shared(text)?;
    Some(serde_json::from_str::<Page>(result.get()).ok()?.tools)
}

/// The payload is valid already, so sonic-rs may skip it without checks.
fn list_sonic(text: String) -> Option<Vec<FastStr>> {
    let text = FastStr::from(text);
    let fields = SonicFields::read(to_object_iter(&text))?;
    let mut tools = Vec::new();
    for entry in fields.result?.into_object_iter()? {
        let (key, value) = entry.ok()?;
        if key == "tools" {
            for tool in value.into_array_iter()? {
                // Copied, as ours: a definition must not keep the whole message alive.
                tools.push(FastStr::new(tool.ok()?.as_raw_str()));
            }
        }
    }
    Some(tools)
}
