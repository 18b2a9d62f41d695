//! Prompts, resources, completions and skills: lists put together, requests brought to whoever knows about them.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use toolyard_core::{CallAnswers, RawJson};

use super::{
    ContentKind, ContentRequest, McpServer,
    answer::{MustSay, Outcome},
    asked::Asked,
    methods::LIST_END,
    speaker::Era,
    state::RequestState,
    work::Work,
};

/// What a cursor begins with once it is decoded.
const CURSOR: &str = "from:";

impl McpServer {
    /// Begins to list what there is of one kind.
    pub(super) fn list_content(self: &Arc<Self>, asked: Asked, kind: ContentKind) -> Work {
        let (server, line) = (Arc::clone(self), Arc::new(self.line(&asked)));
        let future = Box::pin(async move {
            let lists = asked.room.door.content.iter().map(|content| content.list(kind));
            let entries: Vec<RawJson> =
                futures_util::future::join_all(lists).await.into_iter().flatten().collect();
            server.content_page(&asked, kind, &entries)
        });
        Work::new(line, future)
    }

    fn content_page(&self, asked: &Asked, kind: ContentKind, entries: &[RawJson]) -> Outcome {
        let Some(start) = asked.params.cursor.as_deref().map_or(Some(0), start_of) else {
            return Outcome::error(-32602, "params.cursor is not one that was given here");
        };
        let limits = &self.config.limits;
        let rest = entries.get(start..).unwrap_or_default();
        let mut bytes = 0;
        let fits = |entry: &&RawJson| {
            bytes += entry.get().len() + 1;
            bytes <= limits.page_bytes
        };
        let count = rest.iter().take(limits.page_entries).take_while(fits).count().max(1).min(rest.len());
        let shown: Vec<&str> = rest.iter().take(count).map(RawJson::get).collect();
        let next = (rest.len() > count).then(|| URL_SAFE_NO_PAD.encode(format!("{CURSOR}{}", start + count)));
        let entries = shown.join(",") + LIST_END;
        self.list_outcome(asked.speaker.era(), key_of(kind), entries.into(), next, &[])
    }

    /// Brings a request to whoever knows what it is about.
    pub(super) fn ask_content(self: &Arc<Self>, mut asked: Asked) -> Result<Work, Outcome> {
        let era = asked.speaker.era();
        if let Some(sealed) = asked.params.state.as_deref().filter(|_| era == Era::Modern)
            && let Some(RequestState::Parked { instance, number }) = self.open_state(&asked, sealed)
        {
            return self.resume(&asked, instance, number);
        }
        let mut line = self.line(&asked);
        // A server may ask for nothing and only want to be reminded.
        let state = asked.params.state.take().filter(|_| era == Era::Modern);
        let responses = asked.params.responses.take();
        if responses.is_some() || state.is_some() {
            let responses = responses.unwrap_or_else(RawJson::empty_object);
            line.give(&responses);
            line.answers = Some(CallAnswers { responses, state });
        }
        let line = Arc::new(line);
        let calling = Arc::clone(&line);
        let future = Box::pin(async move {
            let params = asked.params.raw.clone().unwrap_or_else(RawJson::empty_object);
            for content in &asked.room.door.content {
                let caller = Some(Arc::clone(&calling) as _);
                let request = ContentRequest { method: &asked.method, params: &params, caller };
                match content.request(request).await {
                    None => {}
                    Some(Ok(raw)) => return Outcome::Result { raw, must_say: must_say(&asked) },
                    Some(Err(_)) if era == Era::Modern && calling.missing().is_some() => {
                        return super::tool_call::missing_capability(calling.missing().unwrap_or("{}"));
                    }
                    Some(Err(mut error)) => {
                        // The modern era has one code for everything that is not there.
                        if era == Era::Modern && error.code == -32002 {
                            error.code = -32602;
                        }
                        return Outcome::Error { error, status: http::StatusCode::OK };
                    }
                }
            }
            nobody_knows(&asked)
        });
        Ok(Work::new(line, future))
    }
}

/// The field of a list's result.
fn key_of(kind: ContentKind) -> &'static str {
    match kind {
        ContentKind::Prompts => "prompts",
        ContentKind::Resources => "resources",
        ContentKind::ResourceTemplates => "resourceTemplates",
        ContentKind::Skills => "skills",
    }
}

fn must_say(asked: &Asked) -> MustSay {
    match (asked.speaker.era(), asked.method.as_str()) {
        (Era::Legacy, _) => MustSay::Nothing,
        (Era::Modern, "prompts/get" | "completion/complete") => MustSay::Kind,
        (Era::Modern, _) => MustSay::KindAndCaching,
    }
}

fn start_of(cursor: &str) -> Option<usize> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(CURSOR)?.parse().ok()
}

/// That something is not there, in the words of the era.
fn nobody_knows(asked: &Asked) -> Outcome {
    let params = &asked.params;
    match (&params.uri, &params.name) {
        (Some(uri), _) if asked.method.starts_with("resources/") => {
            let code = if asked.speaker.era() == Era::Legacy { -32002 } else { -32602 };
            Outcome::error(code, format!("there is no resource {uri}"))
                .with_data(&serde_json::json!({"uri": uri}))
        }
        (Some(uri), _) => Outcome::error(-32602, format!("there is no {uri}")),
        (None, Some(name)) => Outcome::error(-32602, format!("there is no prompt {name}")),
        (None, None) => Outcome::error(-32602, format!("nobody knows what {} is about", asked.method)),
    }
}
