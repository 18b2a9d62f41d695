//! Telling clients what changed: tools, prompts, resources. Once for each real change, and only what they asked for.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{
    StreamExt,
    stream::{BoxStream, SelectAll, unfold},
};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use toolyard_core::{BoxFuture, RawJson};

use super::{
    ContentEvent, ContentRequest, McpServer, answer::Outcome, asked::Asked, line::Line, room::Room,
    speaker::fields, work::Work,
};
use crate::wire::{JsonObject, RequestId, notification};

/// What a client wants to hear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    tools: bool,
    prompts: bool,
    resources: bool,
    /// Which resources; none where that is looked up among what the client subscribed to.
    updates: Option<BTreeSet<String>>,
}

/// Where a message says to which subscription it belongs.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// More resources than this are not listened to by one request.
const MAX_UPDATES: usize = 1_000;

/// Something that happened.
enum Event {
    Tools,
    Content(ContentEvent),
    /// More happened than could be kept: anything may have changed.
    Missed,
}

impl Wanted {
    /// Everything, and updates of whatever the client subscribed to.
    pub(super) fn everything() -> Self {
        Self { tools: true, prompts: true, resources: true, updates: None }
    }

    /// What a request asks for.
    fn read(params: &RawJson) -> Self {
        let mut wanted = Self { updates: Some(BTreeSet::new()), ..Self::default() };
        // What was read before a fault counts.
        let _ = fields(params.get(), |key, value| {
            if key == "notifications" {
                fields(value.get(), |key, value| {
                    let yes = value.boolean() == Some(true);
                    match key {
                        "toolsListChanged" => wanted.tools = yes,
                        "promptsListChanged" => wanted.prompts = yes,
                        "resourcesListChanged" => wanted.resources = yes,
                        "resourceSubscriptions" => {
                            let uris: Vec<String> = serde_json::from_str(value.get()).unwrap_or_default();
                            wanted.updates = Some(uris.into_iter().take(MAX_UPDATES).collect());
                        }
                        _ => {}
                    }
                    Ok(())
                })?;
            }
            Ok(())
        });
        wanted
    }

    /// What of it there is behind a door.
    fn granted(mut self, room: &Room) -> Self {
        let (kinds, changes) = (room.kinds(), room.content_changes());
        self.prompts &= kinds.prompts && changes;
        self.resources &= (kinds.resources || kinds.skills) && changes;
        if !kinds.subscriptions {
            self.updates = Some(BTreeSet::new());
        }
        self
    }

    fn to_json(&self) -> serde_json::Value {
        let mut said = serde_json::Map::new();
        let flags = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        for (key, _) in flags.iter().filter(|(_, wanted)| *wanted) {
            said.insert((*key).to_owned(), true.into());
        }
        if let Some(updates) = self.updates.as_ref().filter(|updates| !updates.is_empty()) {
            said.insert("resourceSubscriptions".to_owned(), json!(updates));
        }
        said.into()
    }
}

impl McpServer {
    /// Begins to tell a client of the modern era what changes; the work ends with the server.
    pub(super) fn listen(self: &Arc<Self>, asked: Asked) -> Work {
        let params = asked.params.raw.clone().unwrap_or_else(RawJson::empty_object);
        let wanted = Wanted::read(&params).granted(&asked.room);
        let line = Arc::new(self.line(&asked));
        let said = Arc::clone(&line);
        let meta = JsonObject::new().with_raw(SUBSCRIPTION_ID, &asked.id.0);
        let ended = JsonObject::new().with_text("resultType", "complete").with_object("_meta", &meta);
        let telling = Telling {
            server: Arc::clone(self),
            room: Arc::clone(&asked.room),
            seen: asked.room.door.tools.catalogue(&asked.speaker.viewer).version,
            wanted,
            subscription: Some(asked.id),
        };
        let mut stopped = self.stopped();
        let future: BoxFuture<'static, Outcome> = Box::pin(async move {
            tokio::select! {
                () = telling.tell(said) => {}
                () = stopped.wait() => {}
            }
            Outcome::result(ended.to_string())
        });
        Work::new(line, future)
    }

    /// The same for a client of the legacy era that listens to everything it has subscribed to.
    pub(super) fn stand_by(self: &Arc<Self>, room: &Arc<Room>, line: Line) -> Work {
        let line = Arc::new(line);
        let seen = self.clients.seen(line.speaker.conversation);
        let said = Arc::clone(&line);
        let telling = Telling {
            server: Arc::clone(self),
            room: Arc::clone(room),
            seen: seen.unwrap_or_else(|| room.door.tools.catalogue(&line.speaker.viewer).version),
            wanted: Wanted::everything().granted(room),
            subscription: None,
        };
        // Whoever introduced itself to another process may know lists that were never ours.
        let is_foreign = seen.is_none() && line.speaker.since.is_some_and(|since| since < self.since);
        let mut stopped = self.stopped();
        let future: BoxFuture<'static, Outcome> = Box::pin(async move {
            if is_foreign {
                telling.say_if(telling.wanted.tools, &said, TOOLS_CHANGED);
                telling.missed(&said);
            }
            tokio::select! {
                () = telling.tell(said) => {}
                () = stopped.wait() => {}
            }
            Outcome::result("{}")
        });
        Work::new(line, future)
    }
}

/// Tells one client what changes.
struct Telling {
    server: Arc<McpServer>,
    room: Arc<Room>,
    /// The catalogue that the client could have seen last.
    seen: u64,
    wanted: Wanted,
    subscription: Option<RequestId>,
}

impl Telling {
    async fn tell(self, line: Arc<Line>) {
        // Whatever changes from here on is told: events are taken before anything is acknowledged.
        let mut events = self.events();
        let _subscribed = self.subscribe().await;
        if self.subscription.is_some() {
            let granted = JsonObject::new().with_value("notifications", &self.wanted.to_json());
            self.say(&line, "notifications/subscriptions/acknowledged", granted);
        }
        while let Some(event) = events.next().await {
            match event {
                Event::Tools => self.say_if(self.wanted.tools, &line, TOOLS_CHANGED),
                Event::Content(ContentEvent::PromptsChanged) => {
                    self.say_if(self.wanted.prompts, &line, PROMPTS_CHANGED);
                }
                Event::Content(ContentEvent::ResourcesChanged) => {
                    self.say_if(self.wanted.resources, &line, RESOURCES_CHANGED);
                }
                Event::Content(ContentEvent::ResourceUpdated(uri)) => {
                    let is_wanted = match &self.wanted.updates {
                        Some(updates) => updates.contains(&uri),
                        None => self.server.clients.is_subscribed(line.speaker.conversation, &uri),
                    };
                    if is_wanted {
                        let params = JsonObject::new().with_text("uri", &uri);
                        self.say(&line, "notifications/resources/updated", params);
                    }
                }
                Event::Missed => self.missed(&line),
            }
        }
        // Nothing will ever change: the stream stays open all the same.
        std::future::pending::<()>().await;
    }

    /// Anything of the content may have changed.
    fn missed(&self, line: &Line) {
        self.say_if(self.wanted.prompts, line, PROMPTS_CHANGED);
        self.say_if(self.wanted.resources, line, RESOURCES_CHANGED);
    }

    fn say_if(&self, wanted: bool, line: &Line, method: &str) {
        if wanted {
            self.say(line, method, JsonObject::new());
        }
    }

    fn say(&self, line: &Line, method: &str, mut params: JsonObject) {
        if let Some(id) = &self.subscription {
            let meta = JsonObject::new().with_raw(SUBSCRIPTION_ID, &id.0);
            params = params.with_object("_meta", &meta);
        }
        line.say(notification(method, &params));
    }

    fn events(&self) -> SelectAll<BoxStream<'static, Event>> {
        let mut all = SelectAll::new();
        let tools = Arc::clone(&self.room.door.tools);
        if self.wanted.tools {
            all.push(
                unfold((tools, self.seen), |(tools, seen)| async move {
                    let seen = tools.changed(seen).await;
                    Some((Event::Tools, (tools, seen)))
                })
                .boxed(),
            );
        }
        for receiver in self.room.door.content.iter().filter_map(|content| content.events()) {
            all.push(
                unfold(receiver, |mut receiver| async move {
                    match receiver.recv().await {
                        Ok(event) => Some((Event::Content(event), receiver)),
                        Err(RecvError::Lagged(_)) => Some((Event::Missed, receiver)),
                        Err(RecvError::Closed) => None,
                    }
                })
                .boxed(),
            );
        }
        all
    }

    /// Sees to it that updates of what the client named are heard of here at all.
    async fn subscribe(&self) -> Subscribed {
        let uris = self.wanted.updates.clone().unwrap_or_default();
        for uri in &uris {
            self.server.subscribe(&self.room, uri).await;
        }
        Subscribed { server: Arc::clone(&self.server), room: Arc::clone(&self.room), uris }
    }
}

/// Resources somebody listens to, until this is dropped.
struct Subscribed {
    server: Arc<McpServer>,
    room: Arc<Room>,
    uris: BTreeSet<String>,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let uris = std::mem::take(&mut self.uris);
        self.server.forget_subscriptions(&self.room, uris);
    }
}

impl McpServer {
    /// One more client wants to hear of a resource. Whoever has it is asked to tell; true if somebody has.
    pub(super) async fn subscribe(&self, room: &Room, uri: &str) -> bool {
        room.subscribe(uri);
        tell_content(room, "resources/subscribe", uri).await
    }

    /// One client less wants to hear of these resources.
    pub(super) fn forget_subscriptions(&self, room: &Arc<Room>, uris: BTreeSet<String>) {
        let last: Vec<String> = uris.into_iter().filter(|uri| room.unsubscribe(uri)).collect();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !last.is_empty() {
            let room = Arc::clone(room);
            runtime.spawn(async move {
                for uri in last {
                    tell_content(&room, "resources/unsubscribe", &uri).await;
                }
            });
        }
    }
}

/// Brings a word about a resource to whoever has it; true if somebody took it.
async fn tell_content(room: &Room, method: &str, uri: &str) -> bool {
    let params = RawJson::from_value(&json!({"uri": uri}));
    for content in &room.door.content {
        let request = ContentRequest { method, params: &params, caller: None };
        if let Some(answer) = content.request(request).await {
            return answer.is_ok();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Wanted {
        Wanted::read(&RawJson::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn only_what_is_asked_for_is_wanted() {
        assert_eq!(read("{}").to_json(), json!({}));
        assert_eq!(
            read(r#"{"notifications":{"toolsListChanged":1,"promptsListChanged":true}}"#).to_json(),
            json!({"promptsListChanged": true})
        );
        assert_eq!(
            read(r#"{"notifications":{"resourceSubscriptions":["b","a"]}}"#).to_json(),
            json!({"resourceSubscriptions": ["a", "b"]})
        );
        assert_eq!(read(r#"{"notifications":{"resourceSubscriptions":[1]}}"#).to_json(), json!({}));
    }
}
