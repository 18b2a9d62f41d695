//! Records what a model says to each request, and says it again without the model, for tests.
//!
//! A cassette is a text file with one JSON object a line: first its version, then an exchange each. Secrets are taken out
//! of everything before it is written; requests are found again by a hash of what was really asked.

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

/// The form of the file.
const VERSION: u32 = 1;

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// It cannot be read or written.
    #[error("failed to open the cassette {path}: {error}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is something else, or of another version.
    #[error("failed to read the cassette {path}, line {line}: {reason}; record it again")]
    Form {
        /// Which.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Why.
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
struct Exchange {
    hash: ContentHash,
    /// For people; it is found by its hash.
    request: RawJson,
    said: Vec<Said>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Event(ModelEvent),
    Error(ModelError),
}

/// Asks another model, and records what it says.
#[derive(Debug)]
pub struct Recorder<M> {
    model: M,
    path: PathBuf,
    file: Mutex<File>,
}

impl<M: Model> Recorder<M> {
    /// Records into this file; one that is there is replaced.
    pub fn new(model: M, path: impl Into<PathBuf>) -> Result<Self, CassetteError> {
        let path = path.into();
        let io = |error| CassetteError::Io { path: path.clone(), error };
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path).map_err(io)?;
        let header =
            Header { cassette: VERSION, model: model.name().to_owned(), tool_calling: model.tool_calling() };
        write_line(&mut file, &header).map_err(io)?;
        Ok(Self { model, path, file: Mutex::new(file) })
    }

    fn record(&self, request: &ModelRequest, said: &[Said]) -> Result<(), ModelError> {
        let request_text = RawJson::from_serialize(request).unwrap_or_else(|_| RawJson::empty_object());
        let (shown, _) = redact_json(&request_text);
        let exchange = Exchange { hash: hash(request), request: shown, said: harmless(said) };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        write_line(&mut file, &exchange).map_err(|error| {
            let message = format!("could not be recorded in {}: {error}", self.path.display());
            ModelError::new(self.model.name(), ModelErrorKind::Refused, message)
        })
    }
}

impl<M: Model> Model for Recorder<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn tool_calling(&self) -> ToolCalling {
        self.model.tool_calling()
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let start = (self.model.generate(request), Vec::new(), false);
        Box::pin(stream::unfold(start, move |(mut inner, mut said, is_over)| async move {
            if is_over {
                return None;
            }
            let item = inner.next().await;
            let is_over = matches!(item, None | Some(Err(_) | Ok(ModelEvent::Finished(_))));
            said.extend(item.as_ref().map(|item| match item {
                Ok(event) => Said::Event(event.clone()),
                Err(error) => Said::Error(error.clone()),
            }));
            // Only what was heard to its end is recorded, and before anybody hears the end.
            let recorded = if is_over { self.record(request, &said) } else { Ok(()) };
            let item = recorded.map_or_else(|error| Some(Err(error)), |()| item)?;
            Some((item, (inner, said, is_over)))
        }))
    }
}

/// A recorded model. The same request again gets the next answer that was recorded for it, and the last one for ever.
#[derive(Debug)]
pub struct Cassette {
    name: String,
    calling: ToolCalling,
    exchanges: HashMap<ContentHash, Mutex<Reel>>,
}

#[derive(Debug, Default)]
struct Reel {
    answers: Vec<Vec<Said>>,
    next: usize,
}

impl Cassette {
    /// Opens a recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CassetteError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CassetteError::Io { path: path.to_owned(), error })?;
        let wrong = |line: usize, reason: String| CassetteError::Form { path: path.to_owned(), line, reason };
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        let first = lines.next().map_or("", |(_, line)| line);
        let header: Header = serde_json::from_str(first).map_err(|error| wrong(1, error.to_string()))?;
        if header.cassette != VERSION {
            return Err(wrong(1, format!("version {} is not known", header.cassette)));
        }
        let mut exchanges: HashMap<ContentHash, Mutex<Reel>> = HashMap::new();
        for (number, line) in lines {
            let exchange: Exchange =
                serde_json::from_str(line).map_err(|error| wrong(number, error.to_string()))?;
            let reel = exchanges.entry(exchange.hash).or_default();
            reel.get_mut().unwrap_or_else(PoisonError::into_inner).answers.push(exchange.said);
        }
        Ok(Self { name: header.model, calling: header.tool_calling, exchanges })
    }

    /// What was recorded for a request.
    fn answer(&self, request: &ModelRequest) -> Option<Vec<Said>> {
        let mut reel = self.exchanges.get(&hash(request))?.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = reel.answers.get(reel.next).or(reel.answers.last()).cloned();
        reel.next += 1;
        answer
    }
}

impl Model for Cassette {
    fn name(&self) -> &str {
        &self.name
    }

    fn tool_calling(&self) -> ToolCalling {
        self.calling
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let said = self.answer(request).unwrap_or_else(|| {
            let message = "was never asked this while it was recorded";
            let error = ModelError::new(&self.name, ModelErrorKind::Refused, message);
            vec![Said::Error(error.with_hint("record the cassette again"))]
        });
        Box::pin(stream::iter(said.into_iter().map(|said| match said {
            Said::Event(event) => Ok(event),
            Said::Error(error) => Err(error),
        })))
    }
}

/// The name of a request: its JSON, whose fields always come in the same order.
fn hash(request: &ModelRequest) -> ContentHash {
    ContentHash::of(serde_json::to_vec(request).unwrap_or_default())
}

/// What was said, without secrets. A secret may come in pieces, so that pieces that belong together are looked at together;
/// they stay as they came where there is none.
fn harmless(said: &[Said]) -> Vec<Said> {
    let same = |one: &Said, other: &Said| match (one, other) {
        (Said::Event(one), Said::Event(other)) => match (one, other) {
            (ModelEvent::ToolCall(one), ModelEvent::ToolCall(other)) => one.index == other.index,
            _ => std::mem::discriminant(one) == std::mem::discriminant(other),
        },
        _ => false,
    };
    let mut kept = Vec::new();
    for pieces in said.chunk_by(same) {
        let whole: String = pieces.iter().map(text_of).collect();
        match (redact(&whole), pieces.first().cloned()) {
            (Cow::Owned(clean), Some(mut first)) => {
                if let Some(text) = text_mut(&mut first) {
                    *text = clean;
                }
                kept.push(first);
            }
            _ => kept.extend_from_slice(pieces),
        }
    }
    kept
}

fn text_of(said: &Said) -> &str {
    match said {
        Said::Event(ModelEvent::Text(text) | ModelEvent::Reasoning(text)) => text,
        Said::Event(ModelEvent::ToolCall(delta)) => &delta.arguments,
        Said::Event(ModelEvent::Usage(_) | ModelEvent::Finished(_)) | Said::Error(_) => "",
    }
}

fn text_mut(said: &mut Said) -> Option<&mut String> {
    match said {
        Said::Event(ModelEvent::Text(text) | ModelEvent::Reasoning(text)) => Some(text),
        Said::Event(ModelEvent::ToolCall(delta)) => Some(&mut delta.arguments),
        Said::Event(ModelEvent::Usage(_) | ModelEvent::Finished(_)) | Said::Error(_) => None,
    }
}

/// One line, in one write.
fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}

#[cfg(test)]
#[path = "cassette_tests.rs"]
mod tests;
