//! Records the replies of a model and replays them without the model.
//!
//! A cassette is a file of JSON lines: a header, then one recording per request. Secrets are redacted before they are
//! written; requests are found again by the hash of the original.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use toolyard_core::{ContentHash, RawJson, redact, redact_json};

use crate::{Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, ToolCalling};

const FORMAT_VERSION: u32 = 1;

/// A cassette that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be read or written.
    #[error("failed to open cassette {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The file is not a cassette, or one of another version.
    #[error("failed to read cassette {path}, line {line}: {reason}; record it again")]
    Format {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The cause.
        reason: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    cassette: u32,
    model: String,
    tool_calling: ToolCalling,
}

#[derive(Debug, Serialize, Deserialize)]
struct Recording {
    request_hash: ContentHash,
    /// Redacted, for readers of the file.
    request: RawJson,
    items: Vec<StreamItem>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StreamItem {
    Event(ModelEvent),
    Error(ModelError),
}

/// A model that records the replies of another model.
#[derive(Debug)]
pub struct CassetteRecorder<M> {
    model: M,
    path: PathBuf,
    file: Mutex<File>,
}

impl<M: Model> CassetteRecorder<M> {
    /// Records into this file, which is replaced.
    pub fn new(model: M, path: impl Into<PathBuf>) -> Result<Self, CassetteError> {
        let path = path.into();
        let io = |error| CassetteError::Io { path: path.clone(), error };
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path).map_err(io)?;
        let header = Header {
            cassette: FORMAT_VERSION,
            model: model.name().to_owned(),
            tool_calling: model.tool_calling(),
        };
        write_line(&mut file, &header).map_err(io)?;
        Ok(Self { model, path, file: Mutex::new(file) })
    }

    fn record(&self, request: &ModelRequest, items: &[StreamItem]) -> Result<(), ModelError> {
        let request_text = RawJson::from_serialize(request).unwrap_or_else(|_| RawJson::empty_object());
        let (redacted, _) = redact_json(&request_text);
        let recording =
            Recording { request_hash: hash_request(request), request: redacted, items: redact_items(items) };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        write_line(&mut file, &recording).map_err(|error| {
            let message = format!("could not be recorded to {}: {error}", self.path.display());
            ModelError::new(self.model.name(), ModelErrorKind::Rejected, message)
        })
    }
}

impl<M: Model> Model for CassetteRecorder<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn tool_calling(&self) -> ToolCalling {
        self.model.tool_calling()
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let start = (self.model.generate(request), Vec::new(), false);
        Box::pin(stream::unfold(start, move |(mut inner, mut items, is_done)| async move {
            if is_done {
                return None;
            }
            let item = inner.next().await;
            let is_done = matches!(item, None | Some(Err(_) | Ok(ModelEvent::Finished(_))));
            items.extend(item.as_ref().map(|item| match item {
                Ok(event) => StreamItem::Event(event.clone()),
                Err(error) => StreamItem::Error(error.clone()),
            }));
            // Only complete streams are recorded, before their last item is passed on.
            let recorded = if is_done { self.record(request, &items) } else { Ok(()) };
            let item = recorded.map_or_else(|error| Some(Err(error)), |()| item)?;
            Some((item, (inner, items, is_done)))
        }))
    }
}

/// A model that replays a recording. Repeating a request returns its next recorded reply, and in the end the last one.
#[derive(Debug)]
pub struct Cassette {
    name: String,
    tool_calling: ToolCalling,
    replies: HashMap<ContentHash, Mutex<RecordedReplies>>,
}

#[derive(Debug, Default)]
struct RecordedReplies {
    replies: Vec<Vec<StreamItem>>,
    next: usize,
}

impl Cassette {
    /// Opens a recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CassetteError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CassetteError::Io { path: path.to_owned(), error })?;
        let format_error =
            |line: usize, reason: String| CassetteError::Format { path: path.to_owned(), line, reason };
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let first = lines.next().map_or("", |(_, line)| line);
        let header: Header =
            serde_json::from_str(first).map_err(|error| format_error(1, error.to_string()))?;
        if header.cassette != FORMAT_VERSION {
            return Err(format_error(1, format!("unknown version {}", header.cassette)));
        }
        let mut replies: HashMap<ContentHash, Mutex<RecordedReplies>> = HashMap::new();
        for (number, line) in lines {
            let recording: Recording =
                serde_json::from_str(line).map_err(|error| format_error(number, error.to_string()))?;
            let recorded = replies.entry(recording.request_hash).or_default();
            recorded.get_mut().unwrap_or_else(PoisonError::into_inner).replies.push(recording.items);
        }
        Ok(Self { name: header.model, tool_calling: header.tool_calling, replies })
    }

    fn next_reply(&self, request: &ModelRequest) -> Option<Vec<StreamItem>> {
        let recorded = self.replies.get(&hash_request(request))?;
        let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = recorded.replies.get(recorded.next).or(recorded.replies.last()).cloned();
        recorded.next += 1;
        reply
    }
}

impl Model for Cassette {
    fn name(&self) -> &str {
        &self.name
    }

    fn tool_calling(&self) -> ToolCalling {
        self.tool_calling
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let items = self.next_reply(request).unwrap_or_else(|| {
            let message = "has no recorded reply to this request";
            let error = ModelError::new(&self.name, ModelErrorKind::Rejected, message);
            vec![StreamItem::Error(error.with_hint("record the cassette again"))]
        });
        Box::pin(stream::iter(items.into_iter().map(|item| match item {
            StreamItem::Event(event) => Ok(event),
            StreamItem::Error(error) => Err(error),
        })))
    }
}

fn hash_request(request: &ModelRequest) -> ContentHash {
    ContentHash::of(serde_json::to_vec(request).unwrap_or_default())
}

/// Redacts secrets. A secret may be spread over several pieces, so consecutive pieces are redacted together; without a
/// secret they stay as they are.
fn redact_items(items: &[StreamItem]) -> Vec<StreamItem> {
    let belong_together = |one: &StreamItem, other: &StreamItem| match (one, other) {
        (StreamItem::Event(one), StreamItem::Event(other)) => match (one, other) {
            (ModelEvent::ToolCall(one), ModelEvent::ToolCall(other)) => one.index == other.index,
            _ => std::mem::discriminant(one) == std::mem::discriminant(other),
        },
        _ => false,
    };
    let mut redacted = Vec::new();
    for pieces in items.chunk_by(belong_together) {
        let whole: String = pieces.iter().map(text_of).collect();
        match (redact(&whole), pieces.first().cloned()) {
            (Cow::Owned(clean), Some(mut first)) => {
                if let Some(text) = text_mut(&mut first) {
                    *text = clean;
                }
                redacted.push(first);
            }
            _ => redacted.extend_from_slice(pieces),
        }
    }
    redacted
}

fn text_of(item: &StreamItem) -> &str {
    match item {
        StreamItem::Event(ModelEvent::Text(text) | ModelEvent::Reasoning(text)) => text,
        StreamItem::Event(ModelEvent::ToolCall(delta)) => &delta.arguments,
        StreamItem::Event(ModelEvent::Usage(_) | ModelEvent::Finished(_)) | StreamItem::Error(_) => "",
    }
}

fn text_mut(item: &mut StreamItem) -> Option<&mut String> {
    match item {
        StreamItem::Event(ModelEvent::Text(text) | ModelEvent::Reasoning(text)) => Some(text),
        StreamItem::Event(ModelEvent::ToolCall(delta)) => Some(&mut delta.arguments),
        StreamItem::Event(ModelEvent::Usage(_) | ModelEvent::Finished(_)) | StreamItem::Error(_) => None,
    }
}

/// Writes one line with one system call.
fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

#[cfg(test)]
#[path = "cassette_tests.rs"]
mod tests;
