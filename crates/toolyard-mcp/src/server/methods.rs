//! Which method leads where.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use super::{
    ContentKind, ContentKinds, McpServer,
    answer::Outcome,
    asked::Asked,
    log_level::LogLevel,
    speaker::{Era, text_field},
    work::Work,
};
use crate::wire::JsonObject;

/// A request that was begun.
#[derive(Debug)]
pub(super) enum Begun {
    Done(Outcome),
    Works(Work),
}

/// What follows the entries of a list: the ends of the list, of the result and of the message.
pub(super) const LIST_END: &str = "]}}";

/// Every method that may be there, for whoever mistypes one.
const METHODS: [&str; 18] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/directory/read",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "skills/get",
    "skills/list",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

impl McpServer {
    /// Begins to answer a request of somebody who is known.
    pub(super) fn begin(self: &Arc<Self>, asked: Asked) -> Begun {
        if let Some(what) = asked.params.misshapen {
            return Begun::Done(Outcome::error(
                -32602,
                format!("{what} does not have the form it must have"),
            ));
        }
        let era = asked.speaker.era();
        // The road that nearly everything takes comes first.
        if asked.method == "tools/call" {
            return self.call_tool(asked).map_or_else(Begun::Done, Begun::Works);
        }
        let kinds = asked.room.kinds();
        match (asked.method.as_str(), era) {
            ("tools/list", _) => Begun::Works(self.list_tools(asked)),
            ("tools/describe", _) => Begun::Done(describe(&asked)),
            ("ping", Era::Legacy) => Begun::Done(Outcome::result("{}")),
            ("server/discover", Era::Modern) => Begun::Done(self.discovered(&asked.room)),
            ("subscriptions/listen", Era::Modern) => Begun::Works(self.listen(asked)),
            ("logging/setLevel", Era::Legacy) => Begun::Done(self.set_log_level(&asked)),
            ("resources/subscribe" | "resources/unsubscribe", Era::Legacy) if kinds.subscriptions => {
                self.change_subscription(asked)
            }
            (method, _) => match content_of(method, kinds) {
                Some(Content::List(kind)) => Begun::Works(self.list_content(asked, kind)),
                Some(Content::Request) => self.ask_content(asked).map_or_else(Begun::Done, Begun::Works),
                None => Begun::Done(unknown_method(&asked.method, era)),
            },
        }
    }

    fn list_tools(self: &Arc<Self>, asked: Asked) -> Work {
        let (server, line) = (Arc::clone(self), Arc::new(self.line(&asked)));
        let future = Box::pin(async move {
            let mut notes = Vec::new();
            if let Some(readiness) = &asked.room.door.readiness {
                // What is not there by then is missing from the list, and noted.
                let _ = tokio::time::timeout(server.config.list_patience, readiness.settled()).await;
                notes = readiness.notes();
            }
            let written = asked.room.catalogue(&asked.speaker.viewer);
            if asked.speaker.since.is_some() {
                let (conversation, at_most) = (asked.speaker.conversation, server.config.limits.remembered);
                server.clients.saw(conversation, written.catalogue.version, at_most);
            }
            match written.page(asked.params.cursor.as_deref(), &server.config.limits) {
                Some(page) => {
                    server.list_outcome(asked.speaker.era(), "tools", page.entries, page.next, &notes)
                }
                None => Outcome::error(-32602, "params.cursor is not one that was given here"),
            }
        });
        Work::new(line, future)
    }

    /// A page of a list in the words of an era; `entries` go on to the end of the message, which is [`LIST_END`].
    ///
    /// The list is the last field, so that what all answers share is sent at once with what stands before it.
    pub(super) fn list_outcome(
        &self,
        era: Era,
        key: &str,
        entries: Bytes,
        next: Option<String>,
        notes: &[String],
    ) -> Outcome {
        let (mut fields, mut meta) = (JsonObject::new(), JsonObject::new());
        if era == Era::Modern {
            fields = fields.with_text("resultType", "complete");
            fields = fields.with_value("ttlMs", &self.ttl().into()).with_text("cacheScope", self.scope());
            meta = meta.with_value("io.modelcontextprotocol/serverInfo", &self.info(true));
        }
        if let Some(next) = next {
            fields = fields.with_text("nextCursor", &next);
        }
        if !notes.is_empty() {
            meta = meta.with_value("toolyard/notes", &json!(notes));
        }
        if !meta.is_empty() {
            fields = fields.with_object("_meta", &meta);
        }
        let comma = if fields.is_empty() { "" } else { "," };
        let mut before = fields.to_string();
        // The object goes on.
        before.pop();
        before.extend([comma, "\"", key, "\":["]);
        Outcome::Ending { before, shared: entries }
    }

    fn set_log_level(&self, asked: &Asked) -> Outcome {
        let raw = asked.params.raw.as_ref();
        let level = raw.and_then(|raw| text_field(raw.get(), "level"));
        match level.as_deref().and_then(LogLevel::named) {
            Some(level) => {
                let (conversation, at_most) = (asked.speaker.conversation, self.config.limits.remembered);
                self.clients.set_log_level(conversation, level, at_most);
                Outcome::result("{}")
            }
            None => Outcome::error(
                -32602,
                "params.level must be one of debug, info, notice, warning, error, critical, alert, emergency",
            ),
        }
    }

    /// Remembers what a client of the legacy era wants to hear of, and tells whoever has it.
    fn change_subscription(self: &Arc<Self>, asked: Asked) -> Begun {
        let Some(uri) = asked.params.uri.clone() else {
            return Begun::Done(Outcome::error(-32602, "params.uri is missing"));
        };
        let (server, line) = (Arc::clone(self), Arc::new(self.line(&asked)));
        let future = Box::pin(async move {
            let (conversation, at_most) = (asked.speaker.conversation, server.config.limits.remembered);
            if asked.method == "resources/unsubscribe" {
                if server.clients.unsubscribe(conversation, &uri) {
                    server.forget_subscriptions(&asked.room, [uri].into());
                }
                return Outcome::result("{}");
            }
            if server.clients.is_subscribed(conversation, &uri) {
                return Outcome::result("{}");
            }
            if !server.subscribe(&asked.room, &uri).await {
                server.forget_subscriptions(&asked.room, [uri.clone()].into());
                return Outcome::error(-32002, format!("there is no resource {uri}"))
                    .with_data(&json!({"uri": uri}));
            }
            if !server.clients.subscribe(conversation, &uri, at_most) {
                server.forget_subscriptions(&asked.room, [uri].into());
                return Outcome::error(-32603, "too much is subscribed to already");
            }
            Outcome::result("{}")
        });
        Begun::Works(Work::new(line, future))
    }
}

/// One tool's definition: the seed's `tools/describe`, an extension of ours.
fn describe(asked: &Asked) -> Outcome {
    let Some(name) = &asked.params.name else { return Outcome::error(-32602, "params.name is missing") };
    let Some(definition) = asked.room.door.tools.describe(name) else {
        return Outcome::error(
            -32602,
            format!("tool `{name}` does not exist; tools/list names those that do"),
        );
    };
    let kind = if asked.speaker.era() == Era::Modern { r#""resultType":"complete","# } else { "" };
    Outcome::result(format!(r#"{{{kind}"tool":{}}}"#, definition.get()))
}

enum Content {
    List(ContentKind),
    Request,
}

/// What a method about content means, if there is such content.
fn content_of(method: &str, kinds: ContentKinds) -> Option<Content> {
    let resources = kinds.resources || kinds.skills;
    let (content, is_there) = match method {
        "prompts/list" => (Content::List(ContentKind::Prompts), kinds.prompts),
        "prompts/get" => (Content::Request, kinds.prompts),
        "resources/list" => (Content::List(ContentKind::Resources), resources),
        "resources/templates/list" => (Content::List(ContentKind::ResourceTemplates), resources),
        "resources/read" => (Content::Request, resources),
        "resources/directory/read" | "skills/get" => (Content::Request, kinds.skills),
        "skills/list" => (Content::List(ContentKind::Skills), kinds.skills),
        "completion/complete" => (Content::Request, kinds.completions),
        _ => return None,
    };
    is_there.then_some(content)
}

/// That nobody knows a method, and which one may have been meant.
pub(super) fn unknown_method(method: &str, era: Era) -> Outcome {
    let status = if era == Era::Modern { StatusCode::NOT_FOUND } else { StatusCode::OK };
    let shown: String = method.chars().take(64).collect();
    let near = METHODS
        .into_iter()
        .filter(|known| *known != method)
        .map(|known| (strsim::damerau_levenshtein(known, &shown), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len() / 4);
    let hint = near.map(|(_, known)| format!("; did you mean `{known}`?")).unwrap_or_default();
    Outcome::refused(status, -32601, format!("method `{shown}` does not exist here{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(method: &str) -> String {
        match unknown_method(method, Era::Modern) {
            Outcome::Error { error, .. } => error.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_mistyped_method_is_guessed_and_another_is_not() {
        assert_eq!(
            message("tools/lst"),
            "method `tools/lst` does not exist here; did you mean `tools/list`?"
        );
        assert_eq!(message("unknown/method"), "method `unknown/method` does not exist here");
        assert!(message(&"x".repeat(10_000)).len() < 200);
    }
}
